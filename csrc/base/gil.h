/* gil.h: the hook by which a long call gives up the interpreter's lock.
 *
 * Calls through cffi always give up the lock. The accelerator keeps it at first. Most calls end
 * sooner than the lock could be given up and taken back. The hook is called if a call opens a loop
 * over several blocks or makes a large array. The accelerator takes the lock back once, when the
 * call returns.
 */
#ifndef MG_GIL_H
#define MG_GIL_H

/* Called on any thread, any number of times. Does nothing if no call of the accelerator holds the
 * lock. */
void mg_gil_give_up(void);
void mg_gil_set_hook(void (*hook)(void));

#endif
