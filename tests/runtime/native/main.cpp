// Plays what the command line names.

#include <cstdio>
#include <cstring>

#include "plays.hpp"

int main(int, char **given) {
    const struct {
        const char *name;
        int (*play)(char **given);
    } plays[] = {
        {"launch", launch},
        {"load", load},
        {"load_failing", load_failing},
        {"grow_failing", grow_failing},
        {"misuse", misuse},
        {"out_of_range", out_of_range},
    };
    for (const auto &[name, play] : plays)
        if (!std::strcmp(given[1], name)) return play(given + 2);
    std::fprintf(stderr, "no play %s\n", given[1]);
    return 1;
}
