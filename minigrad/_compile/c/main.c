/* main.c: runs the program on inputs from a file and prints what it returns.
 *
 * Usage: program [FILE [RUNS]]. The file has the values of all arguments, one after the other, each
 * row-major in its own dtype. A line of output is a tensor: dtype, shape, values as %a or integers.
 */
#include "minigrad.h"
#include "memory/array.h"
#include "program_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *main_dtypes[] = {"uint8",    "int8", "int16", "int32",   "float16",
                                    "bfloat16", "bool", "int64", "float32", "float64"};

static int main_failed(const char *what) {
    fprintf(stderr, "program: %s (error %d)\n", what, mg_error());
    return 1;
}

static size_t main_bytes(const mg_array *a) { return (size_t)a->size * (size_t)mg_itemsize(a->dtype); }

/* A given array; the values of an argument come from a file. */
static mg_array *main_array(const program_given_array *g, FILE *file) {
    int64_t shape[16] = {0};
    for (int d = 0; d < g->ndim; d++) shape[g->axes[d]] = g->shape[d];
    mg_array *a = mg_empty(g->dtype, g->ndim, g->values ? shape : g->shape);
    if (!a) return NULL;
    if (!g->values) {
        if (file && fread(a->data, 1, main_bytes(a), file) == main_bytes(a)) return a;
        mg_release(a);
        return NULL;
    }
    if (main_bytes(a)) memcpy(a->data, g->values, main_bytes(a));
    mg_array *ordered = mg_view_permute(a, g->ndim, g->axes);
    mg_release(a);
    if (ordered) ordered->weak = g->weak;
    return ordered;
}

static void main_print(const mg_array *given) {
    mg_array *a = mg_reshape((mg_array *)given, given->ndim, given->shape);
    if (!a) return;
    printf("%s [", main_dtypes[a->dtype - MG_UINT8]);
    for (int d = 0; d < a->ndim; d++) printf(d ? ", %" PRId64 : "%" PRId64, a->shape[d]);
    printf("]");
    bool real = a->dtype >= MG_FLOAT32 || a->dtype == MG_FLOAT16 || a->dtype == MG_BFLOAT16;
    for (int64_t i = 0; i < a->size; i++) {
        const char *at = a->data + i * mg_itemsize(a->dtype);
        if (real) printf(" %a", mg_real_at(a->dtype, at));
        else printf(" %" PRId64, mg_whole_at(a->dtype, at));
    }
    printf("\n");
    mg_release(a);
}

/* Runs the program once; 0 if it ran to its end. */
static int main_run(mg_program *program, int count, mg_array **given, mg_array **made) {
    int stopped = mg_program_run(program, count, given, (int)program_live_ints_count, program_live_ints,
                                 (int)program_live_floats_count, program_live_floats);
    while (stopped == MG_PROGRAM_PAUSED) stopped = mg_program_resume(program) ? mg_program_state() : 0;
    if (stopped) return stopped;
    for (int64_t i = 0; i < program_results_count; i++)
        if (!(made[i] = mg_program_take(program, program_results[i]))) return MG_PROGRAM_FAILED;
    mg_program_end(program);
    for (int64_t i = 0; i < program_counts_count; i++) program_live_ints[program_counts[i]]++;
    for (int64_t i = 0; i < program_left_count; i++) {
        mg_array **place = &given[program_left[i].first];
        mg_release(*place);
        *place = mg_reshape(made[program_left[i].second], made[program_left[i].second]->ndim,
                            made[program_left[i].second]->shape);
        if (!*place) return MG_PROGRAM_FAILED;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (mg_isa_use(0)) return main_failed("this processor lacks the instruction set");
    if (mg_run_count() != program_operations) return main_failed("csrc is of another version");
    for (int64_t i = 0; i < program_kernels_count; i++)
        if (strcmp(mg_run_name(program_kernels[i].number), program_kernels[i].name) != 0)
            return main_failed("csrc is of another version");
    int count = (int)program_given_arrays_count, runs = argc > 2 ? atoi(argv[2]) : 1;
    FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
    mg_array **given = calloc((size_t)count + 1, sizeof *given);
    mg_array **made = calloc((size_t)program_results_count + 1, sizeof *made);
    if (!given || !made) return main_failed("no memory");
    for (int i = 0; i < count; i++)
        if (!(given[i] = main_array(&program_given_arrays[i], file)))
            return main_failed(i < program_arguments ? "the file has too few values" : "no memory");
    if (file) fclose(file);
    mg_program *program = mg_program_new(program_code_count, program_code, program_floats_count, program_floats);
    if (!program) return main_failed("the list of steps is damaged");
    for (int run = 0; run < runs; run++) {
        int stopped = main_run(program, count, given, made);
        if (stopped) return main_failed(stopped == MG_PROGRAM_DIFFERS ? "a question has another answer than in the recording"
                                                                      : "a step failed");
        for (int64_t i = 0; i < program_shown_count; i++)
            main_print(program_shown[i].first ? made[program_shown[i].second] : given[program_shown[i].second]);
        for (int64_t i = 0; i < program_results_count; i++) mg_release(made[i]);
    }
    mg_program_free(program);
    for (int i = 0; i < count; i++) mg_release(given[i]);
    free(given);
    free(made);
    return 0;
}
