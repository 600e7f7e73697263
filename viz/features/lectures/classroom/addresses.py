"""The addresses of this machine in its networks, by which phones reach a class."""

import ipaddress
import socket

import psutil
import streamlit as st

from model.engine.guards.access import is_loopback
from viz.session.access import is_public

EVERYWHERE = ("", "0.0.0.0", "::")
"""Values of Streamlit's option `server.address` with which it listens in all networks of the machine."""


def reachable_hosts(visitor: str) -> list[str]:
    """Hosts, as they stand in an address, by which devices in the networks of this machine reach the server; private ones first.

    Empty if the server listens on loopback alone, if it is public, and where the visitor sits at another machine: a container or a
    tunnel between them has addresses of its own.

    Args:
        visitor: the address from which the page was asked for.
    """
    listens = str(st.get_option("server.address") or "")
    if is_public() or is_loopback(listens):
        return []
    states = psutil.net_if_stats()
    up = [interface for name, interface in psutil.net_if_addrs().items() if name in states and states[name].isup]
    ours = [ipaddress.IPv4Address(ip.address) for interface in up for ip in interface if ip.family == socket.AF_INET]
    if not is_loopback(visitor) and visitor not in map(str, ours):
        return []
    others = sorted((ip for ip in ours if not ip.is_loopback and not ip.is_link_local), key=lambda ip: (ip.is_global, ip))
    return [str(ip) for ip in others if listens in (*EVERYWHERE, str(ip))]
