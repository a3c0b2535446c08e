/* gil.h: gives up the interpreter's lock in a call that turns out to be long.
 *
 * Most calls are over sooner than the lock could be given up and taken back, so a call keeps it until
 * it opens a loop over several blocks or makes a large array. It takes the lock back once, when it
 * returns to Python. */
#ifndef MG_GIL_H
#define MG_GIL_H

/* Called on any thread, any number of times; does nothing where no call from Python holds the lock. */
void mg_gil_give_up(void);

#endif
