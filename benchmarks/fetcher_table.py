"""The fetcher's verdicts on URLs of private addresses in many notations, before anything is connected to.

Run with `python benchmarks/fetcher_table.py`, or name URLs: `python benchmarks/fetcher_table.py http://127.1/`.
"""

import sys

import httpx
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from stepcraft.errors import FetchFailed
from stepcraft.sources.web.fetch import Fetcher

URLS = (
    "http://8.8.8.8/",
    "http://[2001:4860:4860::8888]/",
    "http://[64:ff9b::808:808]/",
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f.1/",
    "http://017700000001/",
    "http://0/",
    "http://localhost:22/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.1.1/",
    "http://100.64.0.1/",
    "http://169.254.169.254/latest/meta-data/",
    "http://100.100.100.200/",
    "http://168.63.129.16/",
    "http://192.0.0.192/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[::]/",
    "http://[::1]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[64:ff9b::10.0.0.1]/",
    "http://[64:ff9b:1::1]/",
    "http://[2002:7f00:1::]/",
    "http://[2001::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1]/",
    "http://[ff02::1]/",
    "http://user:word@8.8.8.8/",
    "http://8.8.8.8\\@127.0.0.1/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_INFO",
)


class Nowhere(httpx.AsyncBaseTransport):
    """A network that connects to nothing; a request to connect means that the URL passed the checks."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raise ConnectError with the address."""
        raise httpx.ConnectError(f"would connect to {request.url.host}")


def main() -> None:
    """Print the table."""
    fetcher = Fetcher(network=Nowhere)
    table = Table("URL", "verdict")
    for url in sys.argv[1:] or URLS:
        try:
            fetcher.fetch(url)
        except FetchFailed as verdict:
            table.add_row(
                escape(url), escape(str(verdict).partition("fetched: ")[2] or str(verdict))
            )
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
