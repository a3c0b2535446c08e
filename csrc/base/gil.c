/* gil.c: the hook by which a long call gives up the interpreter's lock. */
#include "gil.h"

static void (*gil_hook)(void);

void mg_gil_give_up(void) {
    if (gil_hook) gil_hook();
}

void mg_gil_set_hook(void (*hook)(void)) { gil_hook = hook; }
