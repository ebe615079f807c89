from __future__ import annotations

import pytest

from tests.unit.kube.certificates import Certificates


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    """Authorities and certificates, made once."""
    return Certificates(tmp_path_factory.mktemp("certificates"))
