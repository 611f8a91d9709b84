// What the program does on the fake driver, by name, with what follows the name on the command line.

#pragma once

// FILE, the bytes of its parameters, and the address of A on the first GPU, on the others 1 MiB further each.
int launch(char **given);

// FILE ...: prints for each what the loader says, or that it is loaded.
int load(char **given);

// CALL N FILE: loads the file when the call of the driver fails after N that succeed; prints what the loader says, and how
// many libraries stay loaded.
int load_failing(char **given);

// CALL N: allocates when that call fails, and twice more, each time so much that the heap grows; prints what the loader
// says each time, and behind it how many handles are kept and how many ranges are mapped, the latter also for the closed
// mesh.
int grow_failing(char **given);

// CALL FILE: makes a call of the loader in ways that are wrong, and prints what it says of each.
int misuse(char **given);

// FILE: of a kernel with a dimension N, launched with numbers, extents and places that are none; prints what the loader
// says, and whether what is allocated behind the last launch is where that would have begun.
int out_of_range(char **given);
