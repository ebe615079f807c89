"""How a text becomes a value, and what is said of one that can't."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwatch.settings import kinds
from loopwatch.settings.kinds import Address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":9808", Address("", 9808)),
        ("127.0.0.1:9808", Address("127.0.0.1", 9808)),
        ("localhost:0", Address("localhost", 0)),
        ("[::1]:9808", Address("::1", 9808)),
        ("[::]:65535", Address("::", 65535)),
        ("[fe80::1%eth0]:80", Address("fe80::1%eth0", 80)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert kinds.address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        *("", "9808", "localhost", ":", "localhost:", ":-1", ":65536", ":9999999999", ":http", "::1:9808", "[::1]", "[::1]9808", "[::1"),
        *("::1]:80", "[localhost]:80", "a b:80", ":9808 ", "http://localhost:80", ":٩", ":+1", "a/b:80"),
    ],
)
def test_what_is_no_address_is_told_what_one_is(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape("must be host:port, [IPv6 address]:port or :port")):
        kinds.address(text)


@given(st.text())
def test_an_address_that_is_taken_names_a_port_that_exists(text: str) -> None:
    try:
        address = kinds.address(text)
    except ValueError:
        return
    assert 0 <= address.port <= 65_535
    assert text in {f"{address.host}:{text.rpartition(':')[2]}", f"[{address.host}]:{text.rpartition(':')[2]}"}


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_true_as_go_reads_it(text: str) -> None:
    assert kinds.boolean(text) is True
    assert kinds.boolean({"1": "0", "t": "f", "T": "F", "TRUE": "FALSE", "true": "false", "True": "False"}[text]) is False


@pytest.mark.parametrize("text", ["", "yes", "no", "on", "tRUE", " true", "2"])
def test_what_is_neither_true_nor_false_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be true or false"):
        kinds.boolean(text)


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", "1_0", "٣", "0x1", " 1", "9" * 5000])
def test_what_is_no_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        kinds.count(text)


@pytest.mark.parametrize("text", ["10", "1 s", "s", "", "-", "1d", "1e3s"])
def test_what_is_no_duration_is_told_what_one_is(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration such as 10s, 1m30s or 500ms, got "):
        kinds.duration(text)


@pytest.mark.parametrize("text", ["http://127.0.0.1:8081/healthz", "http://localhost", "http://[::1]:8081/", "http://poollet.svc:80/a?b=c"])
def test_urls(text: str) -> None:
    assert kinds.http_url(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "127.0.0.1:8081", "https://127.0.0.1/", "http://", "http://:80/", "http://a:99999/", "http://a:b/", "http://[::1/"),
        *("http://a b/", "http://user:secret@a/", "unix:/x", "http://a/\n", "http://a:0/", "OFF"),
    ],
)
def test_what_is_no_url_of_a_healthz_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a URL such as http://"):
        kinds.http_url(text)


@pytest.mark.parametrize("name", ["a", "0", "my-pool", "pool.example.com", "a" * 253, "1.2.3", "a--b"])
def test_dns_subdomains(name: str) -> None:
    assert kinds.dns_subdomain_problem(name) == ""


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a..b", ".a", "a.", "a_b", "a b", "a/b", "é", "a\n", "a" * 254, "a.-b", "../x"])
def test_what_is_no_dns_subdomain_is_told_what_one_is(name: str) -> None:
    assert "must be a DNS subdomain" in kinds.dns_subdomain_problem(name)


@pytest.mark.parametrize("name", ["a", "0", "my-namespace", "a" * 63])
def test_dns_labels(name: str) -> None:
    assert kinds.dns_label_problem(name) == ""


@pytest.mark.parametrize("name", ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "a\n"])
def test_what_is_no_dns_label_is_told_what_one_is(name: str) -> None:
    assert "must be a DNS label" in kinds.dns_label_problem(name)


def test_a_long_or_many_lined_text_is_shown_short_and_on_one_line() -> None:
    assert kinds.shown("a\nb\x1b") == r"'a\nb\x1b'"
    assert len(kinds.shown("x" * 10_000)) < 100
