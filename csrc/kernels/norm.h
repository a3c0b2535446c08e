/* norm.h: statistics that values are normalised by.
 *
 * A row's mean is taken before its deviations, block by block while a block is in cache; blocks
 * are then joined pairwise, in double (Chan, Golub and LeVeque, "Algorithms for computing the sample
 * variance", 1983, equation 2.1). Which elements are a block depends on the shape alone. */
#ifndef MG_NORM_H
#define MG_NORM_H

#include "../memory/array.h"
#include "../threads/pool.h"
#include "vec.h"

#include <math.h>
#include <string.h>

/* What is kept of each set of values that are normalised together, for the backward. x is brought
 * to (x - mean) * rstd + shift, where shift makes up for the rounding of the mean. */
enum norm_statistic { NORM_MEAN, NORM_SHIFT, NORM_RSTD, NORM_VAR, NORM_STATISTICS };

enum {
    NORM_BLOCK = 2048,    /* elements whose mean and deviations are taken together */
    NORM_GRAIN = 32768,   /* least number of elements worth a block of a parallel loop */
    NORM_PARALLEL = 2 * NORM_GRAIN,
};

typedef struct {
    double count, mean, squares; /* squares: the sum of squared deviations from the mean */
} norm_moments;

MG_INLINE norm_moments norm_join(norm_moments a, norm_moments b) {
    double count = a.count + b.count, share = b.count / count, apart = b.mean - a.mean;
    return (norm_moments){count, a.mean + apart * share,
                          a.squares + b.squares + apart * apart * (a.count * share)};
}

#endif
