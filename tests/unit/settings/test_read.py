"""Flags, environment and defaults together, and everything that is said when they can't be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.settings.model import (
    CheckSettings,
    Command,
    ControllerSettings,
    DemoSettings,
    MetricsAuth,
    Mode,
    RbacSettings,
    SidecarSettings,
    Subject,
)
from loopwatch.settings.read import Model, SettingsError, read, unknown_variables
from loopwatch.settings.table import SETTINGS, Setting

NAME = {"machine-pool-name": "my-pool"}
MODELS: dict[Command, Any] = {
    model.command: model for model in (SidecarSettings, ControllerSettings, DemoSettings, RbacSettings, CheckSettings)
}


def sidecar(given: Mapping[str, str], environment: Mapping[str, str] | None = None) -> SidecarSettings:
    return read(SidecarSettings, {**NAME, **given}, environment or {})


def complaint(model: type[Model], given: Mapping[str, str], environment: Mapping[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        read(model, given, environment or {})
    return str(caught.value)


def sidecar_complaint(given: Mapping[str, str], environment: Mapping[str, str] | None = None) -> str:
    return complaint(SidecarSettings, {**NAME, **given}, environment)


def test_the_tables_defaults_are_the_models() -> None:
    assert sidecar({}) == SidecarSettings(machine_pool_name="my-pool")
    assert read(ControllerSettings, {}, {}) == ControllerSettings()
    assert read(DemoSettings, {}, {}) == DemoSettings()
    assert read(RbacSettings, {}, {}) == RbacSettings()


def test_the_defaults_are_those_of_ironcore() -> None:
    settings = sidecar({})
    assert settings.heartbeat_interval_seconds == 10.0
    assert settings.heartbeat_lease_duration_seconds == 40
    assert settings.heartbeat_status_timeout_seconds == 5.0
    assert settings.machine_runtime_endpoint is None
    assert ControllerSettings().machine_pool_lifecycle_grace_period_seconds == 50.0


def test_every_flag_reaches_its_field() -> None:
    assert sidecar(
        {
            "machine-pool-name": "other.pool",
            "mode": "observe",
            "heartbeat-interval": "500ms",
            "heartbeat-lease-duration": "3s",
            "heartbeat-status-timeout": "200ms",
            "machine-runtime-endpoint": "unix:/run/x.sock",
            "machinepoollet-healthz": "off",
            "runtime-start-grace": "0s",
            "kubeconfig": "/k",
            "context": "c",
            "listen-address": "[::1]:0",
            "metrics-auth": "kubernetes",
            "metrics-auth-outage": "1h",
            "tls-cert-file": "/tls.crt",
            "tls-key-file": "/tls.key",
            "log-level": "error",
        }
    ) == SidecarSettings(
        machine_pool_name="other.pool",
        mode=Mode.OBSERVE,
        heartbeat_interval_seconds=0.5,
        heartbeat_lease_duration_seconds=3,
        heartbeat_status_timeout_seconds=0.2,
        machine_runtime_endpoint="unix:/run/x.sock",
        machinepoollet_healthz=None,
        runtime_start_grace_seconds=0.0,
        kubeconfig="/k",
        context="c",
        listen_host="::1",
        listen_port=0,
        metrics_auth=MetricsAuth.KUBERNETES,
        metrics_auth_outage_seconds=3600.0,
        tls_cert_file="/tls.crt",
        tls_key_file="/tls.key",
        log_level="error",
    )
    assert read(
        ControllerSettings, {"machine-pool-lifecycle-grace-period": "1m30s", "mark-never-reported": "false", "no-act": "true"}, {}
    ) == ControllerSettings(machine_pool_lifecycle_grace_period_seconds=90.0, mark_never_reported=False, act=False)
    assert read(DemoSettings, {"port": "0", "once": "true"}, {}) == DemoSettings(port=0, once=True)
    assert read(
        RbacSettings,
        {
            "process": "reader",
            "machine-pool-name": "a",
            "namespace": "b",
            "service-account": "c",
            "name-prefix": "d",
            "mode": "observe",
            "no-act": "true",
            "leader-elect": "false",
            "leader-elect-resource-name": "e",
            "leader-elect-resource-namespace": "f",
            "machines": "false",
            "metrics-auth": "kubernetes",
        },
        {},
    ) == RbacSettings(
        process=Subject.READER,
        machine_pool_name="a",
        namespace="b",
        service_account="c",
        name_prefix="d",
        mode=Mode.OBSERVE,
        act=False,
        leader_elect=False,
        leader_elect_resource_name="e",
        leader_elect_resource_namespace="f",
        machines=False,
        metrics_auth=MetricsAuth.KUBERNETES,
    )


def test_the_lease_duration_is_a_whole_number() -> None:
    settings = sidecar({"heartbeat-lease-duration": "1m"})
    assert type(settings.heartbeat_lease_duration_seconds) is int


TWO_VALUES = {
    "machine-pool-name": ("a", "b"),
    "mode": ("report", "observe"),
    "machinepoollet-healthz": ("off", "http://a/"),
    "heartbeat-interval": ("8s", "9s"),
    "heartbeat-lease-duration": ("50s", "60s"),
    "heartbeat-status-timeout": ("1s", "2s"),
    "machine-runtime-endpoint": ("unix:/a", "unix:/b"),
    "runtime-start-grace": ("0s", "1s"),
    "machine-pool-lifecycle-grace-period": ("1s", "2s"),
    "mark-never-reported": ("false", "true"),
    "mark-rate": ("1", "2"),
    "leader-elect": ("false", "true"),
    "leader-elect-lease-duration": ("20s", "30s"),
    "leader-elect-renew-deadline": ("8s", "9s"),
    "leader-elect-retry-period": ("1s", "3s"),
    "leader-elect-resource-name": ("a", "b"),
    "leader-elect-resource-namespace": ("a", "b"),
    "lease-kubeconfig": ("/a", "/b"),
    "machines": ("false", "true"),
    "events": ("false", "true"),
    "metrics-auth": ("kubernetes", "none"),
    "metrics-auth-outage": ("0s", "1h"),
    "tls-cert-file": ("/a.crt", "/b.crt"),
    "tls-key-file": ("/a.key", "/b.key"),
    "process": ("reader", "sidecar"),
    "namespace": ("a", "b"),
    "service-account": ("a", "b"),
    "name-prefix": ("a", "b"),
    "as": ("reader", "sidecar"),
    "watch": ("1s", "2s"),
    "output": ("json", "text"),
    "no-act": ("true", "false"),
    "kubeconfig": ("/a", "/b"),
    "context": ("a", "b"),
    "listen-address": (":1", "[::1]:2"),
    "log-level": ("debug", "error"),
    "log-format": ("json", "text"),
    "port": ("1", "2"),
    "once": ("true", "false"),
}


@pytest.mark.parametrize("row", SETTINGS, ids=lambda row: row.name)
def test_a_flag_goes_before_a_variable_and_a_variable_before_the_default(row: Setting) -> None:
    by_variable, by_flag = TWO_VALUES[row.name]
    pair = {"LOOPWATCH_TLS_CERT_FILE": "/crt", "LOOPWATCH_TLS_KEY_FILE": "/key"}
    environment = {"LOOPWATCH_MACHINE_POOL_NAME": "my-pool", **pair, row.variable: by_variable}
    for command in row.commands:
        model = MODELS[command]
        only_variable = read(model, {}, environment)
        both = read(model, {row.name: by_flag}, environment)
        assert dict(row.field_values(row.parse(by_variable))).items() <= vars(only_variable).items()
        assert dict(row.field_values(row.parse(by_flag))).items() <= vars(both).items()
        assert only_variable != both


def test_each_setting_is_read_from_its_variable_alone() -> None:
    settings = read(
        SidecarSettings,
        {},
        {
            "LOOPWATCH_MACHINE_POOL_NAME": "a",
            "LOOPWATCH_MODE": "report",
            "LOOPWATCH_HEARTBEAT_INTERVAL": "2s",
            "LOOPWATCH_HEARTBEAT_STATUS_TIMEOUT": "1s",
            "LOOPWATCH_LISTEN_ADDRESS": ":1",
            "HEARTBEAT_INTERVAL": "3s",
        },
    )
    assert (settings.machine_pool_name, settings.mode, settings.heartbeat_interval_seconds, settings.listen_port) == (
        "a",
        Mode.REPORT,
        2.0,
        1,
    )


def test_upstreams_variable_is_the_fallback_for_the_runtimes_endpoint() -> None:
    upstream = {"IRI_MACHINE_RUNTIME_ENDPOINT": "unix:/upstream"}
    ours = {**upstream, "LOOPWATCH_MACHINE_RUNTIME_ENDPOINT": "unix:/ours"}
    assert sidecar({}, upstream).machine_runtime_endpoint == "unix:/upstream"
    assert sidecar({}, ours).machine_runtime_endpoint == "unix:/ours"
    assert sidecar({"machine-runtime-endpoint": "unix:/flag"}, ours).machine_runtime_endpoint == "unix:/flag"


def test_an_empty_variable_is_not_set() -> None:
    assert sidecar({}, {"LOOPWATCH_HEARTBEAT_INTERVAL": "", "LOOPWATCH_KUBECONFIG": ""}) == sidecar({})


def test_an_empty_flag_leaves_an_optional_setting_unset_and_is_refused_elsewhere() -> None:
    assert sidecar({"machine-runtime-endpoint": "", "kubeconfig": ""}, {"LOOPWATCH_KUBECONFIG": "/k"}).kubeconfig is None
    assert "--heartbeat-interval must be a duration" in sidecar_complaint({"heartbeat-interval": ""})
    assert "--machine-pool-name is required" in sidecar_complaint({"machine-pool-name": ""})


# IronCore v0.5.0's own texts (cmd/machinepoollet), letter for letter: what operators search for.
@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"heartbeat-interval": "0s"}, "--heartbeat-interval must be > 0, got 0s"),
        ({"heartbeat-interval": "-1m30s"}, "--heartbeat-interval must be > 0, got -1m30s"),
        ({"heartbeat-lease-duration": "10s"}, "--heartbeat-lease-duration (10s) must be greater than --heartbeat-interval (10s)"),
        (
            {"heartbeat-lease-duration": "1m0s", "heartbeat-interval": "90s"},
            "--heartbeat-lease-duration (1m0s) must be greater than --heartbeat-interval (1m30s)",
        ),
        (
            {"heartbeat-status-timeout": "10s"},
            "--heartbeat-status-timeout (10s) must be > 0 and less than --heartbeat-interval (10s)",
        ),
        (
            {"heartbeat-status-timeout": "0", "heartbeat-interval": "1500ms"},
            "--heartbeat-status-timeout (0s) must be > 0 and less than --heartbeat-interval (1.5s)",
        ),
        (
            {"heartbeat-status-timeout": "-5s"},
            "--heartbeat-status-timeout (-5s) must be > 0 and less than --heartbeat-interval (10s)",
        ),
    ],
)
def test_upstreams_checks_speak_upstreams_words(given: Mapping[str, str], text: str) -> None:
    assert sidecar_complaint(given) == text


@pytest.mark.parametrize("duration", ["999ms", "10500ms", "40.5s", "2147483648s", "0s", "1s1ns"])
def test_a_lease_duration_that_a_lease_can_not_carry_is_refused(duration: str) -> None:
    problem = sidecar_complaint({"heartbeat-lease-duration": duration, "heartbeat-interval": "1ms", "heartbeat-status-timeout": "1us"})
    assert problem.startswith("--heartbeat-lease-duration must be whole seconds, from 1s to 2147483647s, because a Lease carries it")


@pytest.mark.parametrize(("duration", "seconds"), [("1s", 1), ("1000ms", 1), ("1m", 60), ("2147483647s", 2147483647)])
def test_a_lease_duration_may_be_any_whole_seconds(duration: str, seconds: int) -> None:
    given = {"heartbeat-lease-duration": duration, "heartbeat-interval": "500ms", "heartbeat-status-timeout": "200ms"}
    assert sidecar(given).heartbeat_lease_duration_seconds == seconds


LABEL = "must be a DNS label (at most 63 characters: a-z, 0-9 and '-', beginning and ending with a letter or digit)"
SUBDOMAIN = "must be a DNS subdomain (at most 253 characters: a-z, 0-9, '-' and '.', each part beginning and ending with a letter or digit)"


@pytest.mark.parametrize(
    ("model", "given", "text"),
    [
        (SidecarSettings, {}, "--machine-pool-name is required (or LOOPWATCH_MACHINE_POOL_NAME): a DNS subdomain, at most 253 characters"),
        (ControllerSettings, {"machine-pool-lifecycle-grace-period": "0s"}, "--machine-pool-lifecycle-grace-period must be > 0, got 0s"),
        (ControllerSettings, {"log-level": "loud"}, "--log-level must be one of debug, info, warning, error, got 'loud'"),
        (ControllerSettings, {"no-act": "maybe"}, "--no-act must be true or false, got 'maybe'"),
        (ControllerSettings, {"metrics-auth": "basic"}, "--metrics-auth must be one of none, kubernetes, got 'basic'"),
        (ControllerSettings, {"metrics-auth-outage": "-1s"}, "--metrics-auth-outage must be >= 0, got -1s"),
        (
            ControllerSettings,
            {"tls-cert-file": "/c"},
            "--tls-cert-file is set without --tls-key-file: HTTPS needs both, plain HTTP neither",
        ),
        (ControllerSettings, {"tls-key-file": "/k"}, "--tls-key-file is set without --tls-cert-file: HTTPS needs both, plain HTTP neither"),
        (RbacSettings, {"process": "admin"}, "PROCESS must be one of sidecar, controller, reader, got 'admin'"),
        (RbacSettings, {"machine-pool-name": "A"}, f"--machine-pool-name {SUBDOMAIN}, got 'A'"),
        (
            RbacSettings,
            {"namespace": "a.b"},
            f"--namespace {LABEL}, got 'a.b'",
        ),
        (DemoSettings, {"port": "70000"}, "--port must be a port from 0 to 65535, got 70000"),
        (DemoSettings, {"port": "http"}, "--port must be a whole number, got 'http'"),
    ],
)
def test_what_is_wrong_is_said_with_the_flag_what_is_allowed_and_what_was_given(
    model: type[Model], given: Mapping[str, str], text: str
) -> None:
    assert complaint(model, given) == text


def test_a_runtime_start_grace_below_zero_is_refused() -> None:
    assert sidecar_complaint({"runtime-start-grace": "-1s"}) == "--runtime-start-grace must be >= 0, got -1s"


def test_a_wrong_variable_is_named() -> None:
    problem = sidecar_complaint({}, {"LOOPWATCH_MODE": "x", "LOOPWATCH_HEARTBEAT_INTERVAL": "0s"})
    assert problem == (
        "--mode must be one of auto, report, observe, got 'x' (from LOOPWATCH_MODE); "
        "--heartbeat-interval must be > 0, got 0s (from LOOPWATCH_HEARTBEAT_INTERVAL)"
    )


def test_a_check_between_settings_names_the_variables_among_them() -> None:
    problem = sidecar_complaint(
        {"heartbeat-interval": "50s", "heartbeat-status-timeout": "1s"},
        {"LOOPWATCH_HEARTBEAT_LEASE_DURATION": "40s", "LOOPWATCH_HEARTBEAT_STATUS_TIMEOUT": "99s"},
    )
    assert problem == (
        "--heartbeat-lease-duration (40s) must be greater than --heartbeat-interval (50s) (from LOOPWATCH_HEARTBEAT_LEASE_DURATION)"
    )


def test_half_a_tls_pair_names_the_variable_that_it_came_from() -> None:
    assert complaint(ControllerSettings, {}, {"LOOPWATCH_TLS_KEY_FILE": "/k"}).endswith("neither (from LOOPWATCH_TLS_KEY_FILE)")


def test_every_problem_is_told_in_one_line() -> None:
    problem = sidecar_complaint({"machine-pool-name": "A\nB", "mode": "", "heartbeat-interval": "x", "listen-address": "9808"})
    assert "\n" not in problem
    assert [flag in problem for flag in ("--machine-pool-name ", "--mode ", "--heartbeat-interval ", "--listen-address ")] == [True] * 4
    assert problem.count("; ") == 3, "checks between settings that were not read are left out"


def test_a_variable_of_another_command_disturbs_nobody() -> None:
    assert read(DemoSettings, {}, {"LOOPWATCH_HEARTBEAT_INTERVAL": "nonsense"}) == DemoSettings()


def test_what_kubernetes_sets_for_a_service_of_our_name_is_not_taken_for_a_setting() -> None:
    environment = {
        "LOOPWATCH_PORT": "tcp://10.96.0.7:9808",
        "LOOPWATCH_SERVICE_HOST": "10.96.0.7",
        "LOOPWATCH_SERVICE_PORT": "9808",
        "LOOPWATCH_SERVICE_PORT_METRICS": "9808",
        "LOOPWATCH_PORT_9808_TCP": "tcp://10.96.0.7:9808",
        "LOOPWATCH_PORT_9808_TCP_ADDR": "10.96.0.7",
        "LOOPWATCH_CONTROLLER_PORT": "tcp://10.96.0.8:9808",
        "LOOPWATCH_CONTROLLER_SERVICE_PORT": "9808",
    }
    assert read(DemoSettings, {}, environment) == DemoSettings()
    assert unknown_variables(environment) == []


def test_the_demos_port_is_read_from_its_variable() -> None:
    assert read(DemoSettings, {}, {"LOOPWATCH_PORT": "1234"}).port == 1234


def test_a_variable_that_no_setting_reads_is_named_with_its_neighbour() -> None:
    environment = {"LOOPWATCH_HEARTBEAT_INTERVALL": "1s", "LOOPWATCH_NONSENSE_OF_ANOTHER": "x", "LOOPWATCH_MODE": "auto", "OTHER": "y"}
    assert unknown_variables(environment) == [
        "LOOPWATCH_HEARTBEAT_INTERVALL in the environment is no setting; did you mean LOOPWATCH_HEARTBEAT_INTERVAL?",
        "LOOPWATCH_NONSENSE_OF_ANOTHER in the environment is no setting",
    ]


texts = st.text(max_size=12) | st.sampled_from(["0s", "1s", "40s", "500ms", "off", "true", ":1", "auto", "-5s", "http://a/"])


@given(
    st.dictionaries(st.sampled_from([row.name for row in SETTINGS]), texts),
    st.dictionaries(st.sampled_from([row.variable for row in SETTINGS]), texts),
)
def test_whatever_is_given_there_are_sound_settings_or_one_line_that_names_a_flag(
    given_: dict[str, str], environment: dict[str, str]
) -> None:
    problem = ""
    try:
        settings = read(SidecarSettings, {**NAME, **given_}, environment)
    except SettingsError as error:
        problem = str(error)
    if problem:
        assert problem.startswith("--")
        assert problem.isprintable()
        return
    assert 0 < settings.heartbeat_status_timeout_seconds < settings.heartbeat_interval_seconds
    assert settings.heartbeat_interval_seconds < settings.heartbeat_lease_duration_seconds < 2**31
    assert settings.heartbeat_lease_duration_seconds >= 1
    assert settings.runtime_start_grace_seconds >= 0
    assert 0 <= settings.listen_port <= 65_535
