"""Kubeconfig files as people write them, and as they break."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from loopwatch.kube.connection import ConnectionSettings, find_source
from loopwatch.kube.errors import ConfigError
from loopwatch.kube.kubeconfig import Kubeconfig
from loopwatch.kube.login import InCluster, Login, check_tls
from tests.support.stepped import stepped
from tests.unit.kube.certificates import Certificates
from tests.unit.kube.kubeconfigs import kubeconfig, write

SERVER = "https://10.0.0.1:6443"


def login_of(path: Path, content: dict[str, Any], context: str = "") -> Login:
    """What the file says."""
    return Kubeconfig((write(path, content),), context).read().login


def refused(path: Path, content: dict[str, Any] | str, context: str = "") -> str:
    """The text of the ConfigError, without the path that begins it."""
    if isinstance(content, str):
        path.write_text(content)
    else:
        write(path, content)
    with pytest.raises(ConfigError) as caught:
        Kubeconfig((path,), context).read()
    assert caught.value.path == str(path)
    return str(caught.value).removeprefix(str(path))


def test_a_user_without_credentials_is_allowed(tmp_path: Path) -> None:
    assert login_of(tmp_path / "k", kubeconfig("http://127.0.0.1:8001")) == Login("http://127.0.0.1:8001")
    assert login_of(tmp_path / "k", kubeconfig(SERVER, {})) == Login(SERVER)


@pytest.mark.parametrize(
    ("user", "authorization"),
    [
        ({"token": "abc"}, "Bearer abc"),
        ({"token": "abc\n"}, "Bearer abc"),
        ({"username": "ü", "password": ""}, "Basic " + base64.b64encode("ü:".encode()).decode()),
        ({"token": "abc", "username": "a", "password": "b"}, "Bearer abc"),
    ],
)
def test_tokens_and_passwords_become_a_header(tmp_path: Path, user: dict[str, Any], authorization: str) -> None:
    assert login_of(tmp_path / "k", kubeconfig(SERVER, user)).authorization == authorization


def test_secrets_are_not_in_the_repr(tmp_path: Path) -> None:
    user = {"token": "s3cret", "client-certificate-data": "czNjcmV0", "client-key-data": "czNjcmV0"}
    shown = repr(login_of(tmp_path / "k", kubeconfig(SERVER, user, **{"proxy-url": "http://me:s3cret@proxy"})))
    assert "s3cret" not in shown


def test_data_goes_before_a_file_and_paths_are_relative_to_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "pki").mkdir()
    for name in ("crt", "key", "ca"):
        (tmp_path / "pki" / name).write_text(f"file {name}")
    user = {
        "client-certificate": "pki/crt",
        "client-key": str(tmp_path / "pki" / "key"),
        "client-key-data": base64.b64encode(b"data").decode(),
    }
    reading = Kubeconfig((write(tmp_path / "k", kubeconfig(SERVER, user, **{"certificate-authority": "pki/ca"})),)).read()
    login = reading.login
    assert (login.client_certificate, login.client_key, login.certificate_authority) == (b"file crt", b"data", "file ca")
    assert reading.files == (tmp_path / "k", tmp_path / "pki" / "ca", tmp_path / "pki" / "crt"), "a change of one of them is a rotation"


def test_the_context_may_be_chosen(tmp_path: Path) -> None:
    content = kubeconfig(SERVER, {"token": "here"})
    content["contexts"].append({"name": "there", "context": {"cluster": "c2", "user": "u2"}})
    content["clusters"].append({"name": "c2", "cluster": {"server": "https://there"}})
    content["users"].append({"name": "u2", "user": {"token": "there"}})
    assert login_of(tmp_path / "k", content).authorization == "Bearer here"
    chosen = login_of(tmp_path / "k", content, "there")
    assert (chosen.server, chosen.authorization) == ("https://there", "Bearer there")
    assert refused(tmp_path / "k", content, "nowhere") == ": has no context 'nowhere'; choose one of its contexts: here, there"


def test_of_several_files_the_first_that_names_a_thing_wins(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "token").write_text("by-two")
    first = kubeconfig("https://one", {"token": "one"})
    first["users"] = None
    del first["current-context"]
    second = kubeconfig("https://two", {"tokenFile": "token"})
    paths = (write(tmp_path / "one" / "k", first), tmp_path / "missing", write(tmp_path / "two" / "k", second))
    login = Kubeconfig(paths, required=False).read().login
    assert (login.server, login.authorization) == ("https://one", "Bearer by-two")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: b: c\n", ":1:5: is no YAML: mapping values are not allowed in this context; correct the line, or write the file anew"),
        ("clusters:\n- name: a\n\tx: 1\n", ":3:1: is no YAML: found "),
        ("users:\n- name: a\n  user: {token: s3cret\n", ":4:1: is no YAML: "),
        ("- a\n", ":1:1: is no kubeconfig: expected `object`, got `array`; write a kubeconfig into it"),
        ("just words\n", ":1:1: is no kubeconfig: expected `object`, got `str`;"),
        (
            "clusters:\n- name: a\n  cluster:\n    server: 5\n",
            ":4:13: is no kubeconfig: expected `str | null`, got `int`; correct clusters[0].cluster.server",
        ),
        (
            "users:\n- name: a\n  user:\n    token: 12345\n",
            ":4:12: is no kubeconfig: expected `str | null`, got `int`; correct users[0].user.token",
        ),
        ("contexts:\n- name: a\n", ":2:3: is no kubeconfig: object missing required field `context`; correct contexts[0]"),
        ("", ": has no current-context; set current-context in it, or choose one of its contexts: none"),
        ("# only a comment\n", ": has no current-context;"),
        ("\x00", ": is no YAML: "),
    ],
)
def test_a_broken_file_is_told_with_its_line_and_no_secret(tmp_path: Path, text: str, said: str) -> None:
    message = refused(tmp_path / "k", text)
    assert message.startswith(said)
    assert "s3cret" not in message
    assert "12345" not in message


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    for path, why in ((tmp_path / "none", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(ConfigError, match=f"can't be read: {why}; give --kubeconfig the path of a file"):
            Kubeconfig((path,)).read()
    with pytest.raises(ConfigError, match="there is no such file; correct"):
        Kubeconfig((tmp_path / "none", tmp_path / "nor this"), required=False).read()


def _with(part: str, **changes: Any) -> dict[str, Any]:
    content = kubeconfig(SERVER, {"token": "t"})
    content[f"{part}s"][0][part] |= changes
    return content


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_with("context", cluster="x"), "the context names a cluster 'x' that is not there; name one that is: c"),
        (_with("context", user="x"), "the context names a user 'x' that is not there; name one that is: u"),
        (_with("cluster", server=None), "the cluster has no server that is a URL; write server: https://HOST:PORT"),
        (_with("cluster", server="10.0.0.1:6443"), "the cluster has no server that is a URL"),
        (_with("cluster", **{"proxy-url": "socks5://p"}), "the proxy is of a kind that is not supported"),
        (_with("cluster", **{"certificate-authority-data": "%%%"}), "certificate-authority-data is no base64"),
        (_with("cluster", **{"certificate-authority": "gone"}), "can't be read: No such file or directory; correct the path"),
        (
            _with("user", **{"client-certificate": "gone", "client-key": "gone"}),
            "can't be read: No such file or directory; correct the path",
        ),
        (_with("user", **{"client-certificate-data": "YQ=="}), "a client certificate and its key must come together"),
        (_with("user", tokenFile="gone"), "can't be read: No such file or directory; correct the path"),
        (_with("user", token="a b"), "holds no token"),
        (_with("user", **{"auth-provider": {"name": "gcp"}}), "auth-provider is not supported"),
        (_with("user", **{"as-groups": ["a", "b"]}), "of impersonation only"),
        (_with("user", **{"as": "x", "as-uid": "1"}), "of impersonation only"),
        (
            _with("user", exec={"command": "c", "apiVersion": "client.authentication.k8s.io/v1alpha1"}),
            "the plugin's apiVersion is not supported",
        ),
        (
            _with("user", exec={"command": "c", "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Always"}),
            "the plugin wants a terminal, and there is none",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_way_out(tmp_path: Path, content: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Kubeconfig((write(tmp_path / "k", content),)).read()
    assert said in str(caught.value)
    assert caught.value.fix


def test_errors_about_an_entry_name_its_line(tmp_path: Path) -> None:
    content = _with("user", **{"auth-provider": {"name": "gcp"}})
    path = write(tmp_path / "k", content)
    line = 1 + path.read_text().splitlines().index("    auth-provider:")
    assert refused(path, content).startswith(f":{line + 1}:7: auth-provider")


def test_an_identity_to_impersonate_is_sent(tmp_path: Path) -> None:
    login = login_of(tmp_path / "k", kubeconfig(SERVER, {"as": "me", "as-groups": ["g"]}))
    assert login.impersonation == (("Impersonate-User", "me"), ("Impersonate-Group", "g"))


def test_a_plugin_is_taken_as_it_stands(tmp_path: Path) -> None:
    plugin = {
        "command": "bin/get",
        "apiVersion": "client.authentication.k8s.io/v1",
        "args": ["--now"],
        "env": [{"name": "A", "value": "s3cret"}],
        "installHint": "install it",
        "provideClusterInfo": True,
        "interactiveMode": "IfAvailable",
    }
    authority = base64.b64encode(b"PEM").decode()
    taken = login_of(tmp_path / "k", kubeconfig(SERVER, {"exec": plugin}, **{"certificate-authority-data": authority})).plugin
    assert taken is not None
    assert (taken.command, taken.arguments, taken.environment) == (str(tmp_path / "bin" / "get"), ("--now",), (("A", "s3cret"),))
    assert json.loads(taken.cluster or b"") == {"server": SERVER, "certificate-authority-data": authority}
    assert "s3cret" not in repr(taken)
    bare = {"command": "get", "apiVersion": "client.authentication.k8s.io/v1beta1", "args": None, "env": None}
    found = login_of(tmp_path / "k", kubeconfig(SERVER, {"exec": bare})).plugin
    assert found is not None
    assert (found.command, found.arguments, found.cluster) == ("get", (), None), "a bare name is looked for in PATH"


def test_certificates_are_checked_before_they_are_used(certificates: Certificates) -> None:
    authority = certificates.authority("authority-one").certificate.read_text()
    one, two = certificates.client("one", "authority-one"), certificates.client("two", "authority-one")
    whole = Login(SERVER, authority, client_certificate=one.certificate.read_bytes(), client_key=one.key.read_bytes())
    check_tls(whole, "k")
    for broken, why in (
        (Login(SERVER, authority[: len(authority) // 2]), ""),
        (Login(SERVER, authority + authority[: len(authority) // 2]), ""),
        (Login(SERVER, "no certificate"), ""),
        (Login(SERVER, authority, client_certificate=one.certificate.read_bytes(), client_key=two.key.read_bytes()), "KEY_VALUES_MISMATCH"),
        (Login(SERVER, authority, client_certificate=one.certificate.read_bytes()[:90], client_key=one.key.read_bytes()), ""),
        (Login(SERVER, authority, client_certificate=one.certificate.read_bytes(), client_key=b"x"), ""),
    ):
        with pytest.raises(ConfigError, match=f"certificates can't be used: .*{why}.*; replace certificate, key and authority"):
            check_tls(broken, "k")


def test_a_key_with_a_passphrase_is_refused_and_not_asked_for(tmp_path: Path, certificates: Certificates) -> None:
    pair = certificates.client("one", "authority-one")
    locked = tmp_path / "locked"
    subprocess.run(["openssl", "pkey", "-in", str(pair.key), "-aes256", "-passout", "pass:x", "-out", str(locked)], check=True)  # noqa: S603, S607
    login = Login(SERVER, client_certificate=pair.certificate.read_bytes(), client_key=locked.read_bytes())
    with pytest.raises(ConfigError, match="certificates can't be used"):
        check_tls(login, "k")


# -- which source


def _found(**environ: str) -> Any:
    return find_source(ConnectionSettings("test", environ=environ))


def test_a_given_path_goes_before_everything(tmp_path: Path) -> None:
    source = find_source(ConnectionSettings("test", tmp_path / "k", environ={"KUBECONFIG": "/x", "KUBERNETES_SERVICE_HOST": "h"}))
    assert source.name == str(tmp_path / "k")


def test_the_variable_goes_before_the_pod_and_the_pod_before_the_home(tmp_path: Path) -> None:
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    home = tmp_path / ".kube" / "config"
    home.parent.mkdir()
    home.write_text("{}")
    assert _found(KUBECONFIG="/x:/y", HOME=str(tmp_path), **pod).name == "/x:/y"
    assert isinstance(_found(KUBECONFIG="", HOME=str(tmp_path), **pod), InCluster)
    assert _found(HOME=str(tmp_path), KUBERNETES_SERVICE_HOST="10.0.0.1").name == str(home)
    chosen = find_source(ConnectionSettings("test", context="there", environ={**pod, "HOME": str(tmp_path)}))
    assert chosen.name == str(home), "a context is one of a kubeconfig"


def test_nowhere_to_connect_to_says_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError, match=r"\.kube/config: is not there, \$KUBECONFIG is not set, and this is no pod of a cluster; give --kubeconfig PATH"
    ):
        _found(HOME=str(tmp_path))


@stepped
async def test_an_address_of_ipv6_is_bracketed(tmp_path: Path, certificates: Certificates) -> None:
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_bytes(certificates.authority("authority-one").certificate.read_bytes())
    source = InCluster(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert source.read().login.server == "https://[fd00::1]:443"


def test_what_kubectl_writes_is_read(tmp_path: Path) -> None:
    text = """
apiVersion: v1
clusters: null
contexts: null
current-context: ""
kind: Config
preferences: {}
users: null
"""
    assert yaml.safe_load(text)["clusters"] is None
    assert "has no current-context" in refused(tmp_path / "k", text)
