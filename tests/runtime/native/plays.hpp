// What the program does on the fake driver, by name, with what follows the name on the command line.

#pragma once

// FILE, the bytes of its parameters, and the address of A on the first GPU, on the others 1 MiB further each.
int launch(char **given);

// FILE ...: prints for each what the loader says, or that it is loaded.
int load(char **given);
