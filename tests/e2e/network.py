"""Network namespaces of a test's own: machines with cables between them that can be cut.

They have no names and are held by a process each, so that all of it, cables included, is gone when the test is, whatever
happens to it. What is started (processes, threads, sockets) within `with machine:` is on that machine.
"""
import os
import shutil
import subprocess

from server import LIBC, die_with_parent, wait_until

CLONE_NEWNET = 0x40000000
NOBODY = "02:00:00:00:00:99"  # a hardware address that no machine has


class Unavailable(RuntimeError):
    """There are no network namespaces here."""


class Machine:
    """A network namespace with a loopback interface."""

    def __init__(self):
        self.before = []
        self.handle = None
        if shutil.which("ip") is None:
            raise Unavailable("install Debian's package iproute2")
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], preexec_fn=die_with_parent,
                                       stderr=subprocess.PIPE)
        here = os.stat("/proc/self/ns/net").st_ino
        there = f"/proc/{self.holder.pid}/ns/net"
        try:
            wait_until(lambda: self.holder.poll() is not None or os.stat(there).st_ino != here, what="a network namespace")
            if self.holder.poll() is not None:
                raise Unavailable(self.holder.stderr.read().decode().strip())
            self.handle = os.open(there, os.O_RDONLY | os.O_CLOEXEC)
            self.ip("link set lo up")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        self.before.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        self._go(self.handle)
        return self

    def __exit__(self, *_):
        before = self.before.pop()
        self._go(before)
        os.close(before)

    @staticmethod
    def _go(handle):
        """The calling thread alone."""
        if LIBC.setns(handle, CLONE_NEWNET) != 0:
            raise Unavailable("setns is refused")

    def ip(self, words):
        with self:
            done = subprocess.run(["ip", *words.split()], check=False, capture_output=True, text=True)
        if done.returncode != 0:
            raise Unavailable(f"ip {words}: {done.stderr.strip()}")

    def close(self):
        if self.handle is not None:
            os.close(self.handle)
        self.holder.kill()
        self.holder.wait()
        self.holder.stderr.close()


class Cable:
    """Between two machines: `name` is its interface on both, `first` and `second` are their addresses, of one /24."""

    def __init__(self, one, other, name, first, second):
        self.ends = [(one, first), (other, second)]
        self.name = name
        one.ip(f"link add {name} type veth peer name {name} netns {other.holder.pid}")
        for machine, address in self.ends:
            machine.ip(f"address add {address}/24 dev {name}")
            machine.ip(f"link set {name} up")

    def unplug(self):
        """The second machine sees that it has no link: it has no way to the other one any more."""
        self.ends[1][0].ip(f"link set {self.name} down")

    def plug(self):
        self.ends[1][0].ip(f"link set {self.name} up")

    def lose(self):
        """Both have a link, and whatever they send vanishes without a word: it goes to nobody's address."""
        for (machine, _), (_, address) in zip(self.ends, reversed(self.ends)):
            machine.ip(f"neighbour replace {address} lladdr {NOBODY} dev {self.name} nud permanent")

    def find(self):
        for (machine, _), (_, address) in zip(self.ends, reversed(self.ends)):
            machine.ip(f"neighbour del {address} dev {self.name}")
