#!/usr/bin/env python3
"""A worker for orders in 20 lines: makes 16 random bytes, in two steps. Listens on 127.0.0.1:PORT (9001)."""
import base64, http.server, json, os, sys


class Worker(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        run = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        print(run["task"], "of", run["order"], flush=True)
        if run["task"] == "create_order":
            answer = {"action": "retry", "after_ms": 2000, "task": "deliver", "sub_status": "brewing"}
        else:
            answer = {"action": "done", "secret": {"payload_base64": base64.b64encode(os.urandom(16)).decode()}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


port = int(sys.argv[1]) if len(sys.argv) > 1 else 9001
http.server.ThreadingHTTPServer(("127.0.0.1", port), Worker).serve_forever()
