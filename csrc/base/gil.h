/* gil.h: the hook by which a long call gives up the interpreter's lock.
 *
 * Calls through cffi give it up always. The accelerator keeps it, as most calls are over sooner than the
 * lock could be given up and taken back, until the call opens a loop over several blocks or makes a large
 * array: then its hook is called. The accelerator takes the lock back once, when the call returns. */
#ifndef MG_GIL_H
#define MG_GIL_H

/* Called on any thread, any number of times; does nothing where no call of the accelerator holds the lock. */
void mg_gil_give_up(void);
void mg_gil_set_hook(void (*hook)(void));

#endif
