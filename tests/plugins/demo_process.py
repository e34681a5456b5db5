"""The bundled demo plugin: the real process over pipes, its real HTTP server over sockets.

DEMO_PYTHON names another interpreter to run the plugin with.
"""

import http.client
import os
import unittest
from urllib.parse import urlsplit

from plugin_process import ROOT, WAIT_S, PluginProcess

PACKAGE = os.path.join(ROOT, "plugins", "demo")
COMMAND = ([os.environ["DEMO_PYTHON"]] if "DEMO_PYTHON" in os.environ else []) + [os.path.join(PACKAGE, "demo")]
MUSIC = {"dew": ("1-dew.flac", "audio/flac"), "slow-mist": ("2-slow-mist.mp3", "audio/mpeg"),
         "eclaircie": ("3-eclaircie.opus", "audio/ogg")}
SCOPES = ["network", "local-network"]


def content(content_id):
    with open(os.path.join(PACKAGE, "music", MUSIC[content_id][0]), "rb") as file:
        return file.read()


class Demo(PluginProcess):
    def __init__(self, command=None, **config):
        super().__init__(*(command or COMMAND))
        if config:
            self.initialize(scopes=SCOPES, config=config)

    def code(self, method, **params):
        error = self.error(method, **params)
        assert set(error) == {"code", "message"}, error
        return error["code"]

    def url(self, content_id="dew"):
        return self.result("stream", content_id=content_id)["url"]


class Get:
    """One HTTP request, answered but with its body unread."""

    def __init__(self, url, method="GET", connection=None, **headers):
        parts = urlsplit(url)
        self.connection = connection or http.client.HTTPConnection(parts.hostname, parts.port, timeout=WAIT_S)
        self.connection.request(method, url.split(parts.netloc, 1)[1], headers={k.replace("_", "-"): v for k, v in headers.items()})
        self.response = self.connection.getresponse()
        self.status = self.response.status
        self.header = self.response.headers.get

    def whole(self):
        body = self.response.read()
        self.connection.close()
        return body

    def until_cut(self):
        """The bytes that came, and whether the body was complete."""
        try:
            return self.response.read(), True
        except http.client.IncompleteRead as short:
            return short.partial, False
        except ConnectionError:
            return b"", False
        finally:
            self.connection.close()


def status(url, method="GET", **headers):
    got = Get(url, method, **headers)
    got.connection.close()
    got.response.close()
    return got.status


class Case(unittest.TestCase):
    def demo(self, *args, **config):
        demo = Demo(*args, **config)
        self.addCleanup(demo.close)
        return demo
