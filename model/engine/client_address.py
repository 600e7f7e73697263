"""Client address: the address of a visitor, also behind trusted proxies. No torch."""

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv6Address, ip_address

from model.errors import BadSetting, phrase
from model.requests.sent_text import whole_number

VARIABLE = "HEADLIGHT_PROXIES"
MOST_PROXIES = 16
FORWARDED_HEADER = "x-forwarded-for"


def trusted_proxies(environment: Mapping[str, str]) -> int:
    """Number of trusted proxies in front of this process: HEADLIGHT_PROXIES, else 0.

    Raises:
        BadSetting: it is not a valid number.
    """
    asked = environment.get(VARIABLE) or "0"
    if (count := whole_number(asked, 0, MOST_PROXIES)) is None:
        raise BadSetting(name=VARIABLE, found=asked[:40], allowed=phrase("a whole number from 0 to {last}", last=MOST_PROXIES))
    return count


def client_address(peer: str, forwarded: Iterable[str], proxies: int) -> str:
    """The address that rate limits count for.

    Each proxy appends its caller's address to X-Forwarded-For. Entries left of the trusted ones come from the client and are
    ignored. With fewer entries than proxies, the peer's address is used.

    Args:
        peer: address of the other end of the connection.
        forwarded: the X-Forwarded-For headers, in order.
        proxies: number of trusted proxies.

    Returns:
        An IPv4 address, or the /64 network of an IPv6 address, which belongs to one client; any other text unchanged.
    """
    # Only the last `proxies` entries were written by machines that we trust; of these the first is the visitor. A
    # visitor can write any number of entries before it, which would give them a new rate limit with each request.
    hops = [hop.strip() for line in forwarded for hop in line.split(",")]
    return _without_port((hops[-proxies] if 0 < proxies <= len(hops) else "") or peer)


def _without_port(text: str) -> str:
    # Some proxies add the port, which differs from connection to connection: `[2001:db8::1]:443` or
    # `192.0.2.1:443`.
    bare = re.sub(r"^\[([^\]]*)\](:\d*)?$|^([^:]+):\d+$", r"\1\3", text)
    try:
        address = ip_address(bare)
    except ValueError:
        return text[:64]
    # A household has 2^64 addresses of IPv6 and may use a new one for each request, so they count as one.
    if isinstance(address, IPv6Address) and not address.ipv4_mapped:
        return f"{IPv6Address(int(address) >> 64 << 64)}/64"
    return str(getattr(address, "ipv4_mapped", None) or address)
