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

/* A reply of `bytes` bytes: an artist with a long biography. */
static void long_answer(const char *id, size_t bytes) {
    size_t rest = bytes - 100;
    char *text = malloc(rest + 1);
    memset(text, 'b', rest);
    text[rest] = 0;
    int head = printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"artist\":{\"content_id\":\"1\",\"name\":\"A\",\"biography\":\"", id);
    size_t tail = strlen("\"}}}");
    printf("%.*s\"}}}\n", (int)(bytes - head - tail), text);
    fflush(stdout);
    free(text);
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
            answer(number, "{\"status\":\"ok\",\"version\":\"1\",\"capabilities\":[\"get_artist\",\"stream\"]}");
        else if (strstr(line, "\"get_artist\""))
            long_answer(number, 10 * 1024 * 1024);
        else
            answer(number, "{\"url\":\"https://host.example/a.flac\",\"content_type\":\"audio/flac\"}");
    }
    return 0;
}
