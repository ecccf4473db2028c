"""Which hosts the fetcher refuses, in every notation of their addresses."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.errors import FetchFailed, FetchRefused
from stepcraft.sources.web.fetch import Fetcher

REFUSED = [
    "127.0.0.1",
    "127.8.9.1",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::8.8.8.8",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "::ffff:0:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::8.8.8.8",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%1",
    "fec0::1",
    "ff02::1",
    "not an address",
]

PUBLIC = [
    "8.8.8.8",
    "93.184.216.34",
    "172.15.0.1",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "169.253.1.1",
    "2606:4700::1111",
    "2001:4860:4860::8888",
    "64:ff9b::808:808",
]

NOTATIONS = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0x7f.1/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://0177.0.0.1/",
    "http://017700000001/",
    "http://00000177.1/",
    "http://0/",
    "http://0x0/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://[::1]/",
    "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://localhost/",
    "http://LOCALHOST/",
    "https://localhost:8443/",
    "http://127.0.0.1:22/",
    "http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/",
    "http://127\u30020\u30020\u30021/",
    "http://127.0.0.1\\@127.0.0.2/",
    "http://example.com\\@127.0.0.1/",
    "http://127.0.0.1#@example.com/",
    "http://127.0.0.1?@example.com/",
]

URLS = [
    "ftp://example.com/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "//example.com/",
    "example.com",
    "",
    "http://",
    "http:///path",
    "http://user:sesame@example.com/",
    "http://user@example.com/",
    "http://[::1/",
    "http://example.com:port/",
    "http://example.com:99999/",
    "http://example.com:0/",
    "http://xn--/",
    "http://xn--%00/",
    "http://exam\nple.com/",
]


class Recording(httpx.AsyncBaseTransport):
    """Notes what is connected to, and connects to nothing."""

    def __init__(self) -> None:
        self.connected: list[tuple[str, int]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.connected.append((request.url.host, request.url.port or 80))
        raise httpx.ConnectError("nobody is there")


@pytest.mark.parametrize("address", REFUSED)
def test_a_host_with_this_address_among_public_ones_is_refused(address: str):
    network = Recording()
    fetcher = Fetcher(resolve=lambda host, port: ["8.8.8.8", address], network=lambda: network)
    with pytest.raises(
        FetchRefused,
        match=r"cannot be fetched: pages\.test has the address .* is not public",
    ):
        fetcher.fetch("http://pages.test/")
    assert network.connected == []


@pytest.mark.parametrize("address", PUBLIC)
def test_a_host_with_this_address_is_connected_to(address: str):
    network = Recording()
    fetcher = Fetcher(resolve=lambda host, port: [address], network=lambda: network)
    with pytest.raises(FetchFailed, match=r"cannot be fetched: .*nobody is there"):
        fetcher.fetch("http://pages.test:8080/")
    assert network.connected == [(address, 8080)]


@pytest.mark.parametrize("url", [*NOTATIONS, *URLS])
def test_a_url_that_is_refused(url: str):
    network = Recording()
    with pytest.raises(FetchFailed) as caught:
        Fetcher(network=lambda: network).fetch(url)
    assert network.connected == []
    assert "sesame" not in str(caught.value)


WORDS = ["http:", "80", ":99999", "::1", "127.0.0.1", "0x7f.1", "%00", "%2e", "localhost", "xn--"]
SIGNS = [*"/\\@:[]?# \t\r\n\u3002\u2460\ud800-."]


@given(st.lists(st.sampled_from(WORDS + SIGNS), max_size=8).map("".join) | st.text(max_size=20))
def test_whatever_the_url_nothing_private_is_connected_to(rest: str):
    network = Recording()
    with pytest.raises(FetchFailed) as caught:
        Fetcher(network=lambda: network).fetch(f"http://{rest}")
    assert network.connected == []
    assert len(str(caught.value).splitlines()) == 1
