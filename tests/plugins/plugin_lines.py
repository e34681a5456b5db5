"""What every plugin has to do with the lines that it reads, whoever wrote it."""

from plugin_process import MAX_LINE


class Lines:
    """For a unittest.TestCase whose `plugin` starts one."""

    def test_a_message_without_an_id_and_a_stray_reply_get_no_answer(self):
        plugin = self.plugin()
        for line in (b'{"jsonrpc":"2.0","method":"ping"}', b'{"jsonrpc":"2.0","method":"nope"}', b"{}",
                     b'{"jsonrpc":"2.0","id":3,"result":{}}', b'{"jsonrpc":"2.0","method":"get_track","params":{}}'):
            plugin.send(line)
        plugin.result("ping")
        self.assertEqual(plugin.close(), 0)
        self.assertEqual(plugin.rest_of_out(), [])

    def test_a_line_of_ten_mebibytes_is_read_and_one_byte_more_is_refused_and_dropped(self):
        plugin = self.plugin()
        head, tail = b'{"jsonrpc":"2.0","id":1,"method":"ping","x_pad":"', b'"}'
        for extra, end, expected in ((0, b"", 1), (0, b"\r", 1), (1, b"", None), (1, b"\r", None), (3000000, b"", None)):
            pad = b"a" * (MAX_LINE - len(head) - len(tail) + extra)
            self.assertEqual(plugin.raw(head + pad + tail + end)["id"], expected)
        plugin.result("ping")
