"""A TCP proxy that can be cut: connections stay, and nothing comes through any more, as when a cable is pulled."""
import selectors
import socket
import threading

CHUNK = 65536


class Proxy:
    """Listens on a free port of 127.0.0.1 and leads to `target` (host, port)."""

    def __init__(self, target):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        self.whole = threading.Event()
        self.whole.set()
        self.over = False
        self.lock = threading.Lock()
        self.links = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.over:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._link, args=(client,), daemon=True).start()

    def _link(self, client):
        server = None
        with self.lock:
            self.links.add(client)
        try:
            self.whole.wait()
            server = socket.create_connection(self.target)
            with self.lock:
                self.links.add(server)
            self._pump(client, server)
        except (OSError, ValueError):
            pass
        finally:
            for end in (client, server):
                if end is not None:
                    with self.lock:
                        self.links.discard(end)
                    end.close()

    def _pump(self, client, server):
        other = {client: server, server: client}
        with selectors.DefaultSelector() as selector:
            for end in other:
                selector.register(end, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    self.whole.wait()
                    data = key.fileobj.recv(CHUNK)
                    if not data:
                        return
                    other[key.fileobj].sendall(data)

    def cut(self):
        self.whole.clear()

    def heal(self):
        """What was connected before the cut is gone for good, like a connection whose peer was fenced."""
        with self.lock:
            links, self.links = self.links, set()
        for link in links:
            try:
                link.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self.whole.set()

    def close(self):
        self.over = True
        self.heal()
        self.listener.close()
