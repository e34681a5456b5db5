/* The smallest compiled plugin: answers each method from the protocol's loop, without a JSON library. Only for the
 * benchmark, where the time should be the host's. With an argument it is the floor instead: it returns each line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char line[1 << 16];

static void answer(const char *id, const char *result) {
    printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", id, result);
    fflush(stdout);
}

/* A reply of `bytes` bytes: an album with 10,000 tracks, all but the last of about the same length. */
static void long_answer(const char *id, long bytes) {
    static char title[1025];
    memset(title, 't', 1024);
    long left = bytes - printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"album\":{\"content_id\":\"1\",\"title\":\"A\",\"tracks\":[", id);
    left -= (long)strlen("]}}}");
    for (int track = 0; track < 10000; track++) {
        /* What is left is shared by the tracks that are left. */
        char head[64];
        int fixed = snprintf(head, sizeof head, "%s{\"content_id\":\"%d\",\"title\":\"", track ? "," : "", track);
        long room = left / (10000 - track) - fixed - 2;
        left -= printf("%s%.*s\"}", head, (int)(room > 1024 ? 1024 : room), title);
    }
    printf("]}}}\n");
    fflush(stdout);
}

int main(int count, char **words) {
    while (fgets(line, sizeof line, stdin)) {
        if (count > 1) {
            fputs(line, stdout);
            fflush(stdout);
            continue;
        }
        char *id = strstr(line, "\"id\":");
        if (!id) continue;
        id += 5;
        char number[24] = {0};
        for (int at = 0; at < 23 && id[at] >= '0' && id[at] <= '9'; at++) number[at] = id[at];
        if (strstr(line, "\"initialize\""))
            printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n", number), fflush(stdout);
        else if (strstr(line, "\"ping\""))
            answer(number, "{\"status\":\"ok\",\"version\":\"1\",\"capabilities\":[\"get_album\",\"stream\"]}");
        else if (strstr(line, "\"get_album\""))
            long_answer(number, 10 * 1024 * 1024);
        else
            answer(number, "{\"url\":\"https://host.example/a.flac\",\"content_type\":\"audio/flac\"}");
    }
    return 0;
}
