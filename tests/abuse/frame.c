/* What the daemon writes has its fields in a fixed order, so that no JSON parser is needed here. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *mark, *me, *bus;

/* Writes all of it to a descriptor, in pieces of at most so many bytes. */
static void write_all(int fd, const char *data, size_t length, size_t piece) {
    while (length > 0) {
        ssize_t written = write(fd, data, length < piece ? length : piece);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(9);
        data += written;
        length -= written;
    }
}

static void say(const char *format, ...) {
    char text[8192];
    va_list values;
    va_start(values, format);
    int length = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    write_all(1, text, length, sizeof text);
}

static void answer(long id, const char *words) {
    say("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"results\":[{\"kind\":\"track\",\"content_id\":\"1\",\"title\":\"%s\"}]}}\n",
        id, words);
}

/* Answers with INTERNAL_ERROR and two numbers that say why. */
static void fail(long id, const char *what, int one, int two) {
    say("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"error\":{\"code\":1,\"message\":\"%s: %d, %d\"}}\n", id, what, one, two);
}

/*ABUSE*/

int main(int argc, char **argv) {
    char *line = NULL;
    size_t room = 0;
    mark = argv[1];
    me = argv[2];
    bus = argv[3];
    while (getline(&line, &room, stdin) > 0) {
        char *at = strstr(line, "\"id\":");
        long id = at ? atol(at + 5) : 0;
        char *words = strstr(line, "\"query\":\"");
        if (words) {
            words += 9;
            char *end = strchr(words, '"');
            if (end) *end = 0;
        }
        if (strstr(line, "\"method\":\"initialize\""))
            say("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"protocol\":\"segue.plugin/1\",\"id\":\"%s\",\"version\":\"1\","
                "\"capabilities\":[\"search\"],\"scopes\":[]}}\n", id, me);
        else if (strstr(line, "\"method\":\"ping\""))
            say("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"result\":{\"status\":\"ok\",\"version\":\"1\",\"capabilities\":[\"search\"]}}\n", id);
        else if (words && strncmp(words, "well", 4) == 0)
            answer(id, words);
        else if (words)
            abuse(id, words);
        else
            say("{\"jsonrpc\":\"2.0\",\"id\":%ld,\"error\":{\"code\":-32601,\"message\":\"no such method\"}}\n", id);
    }
    return 0;
}
