/* run.c: mg_run, which calls every kernel by the number of its operation.
 *
 * Elementwise operations come first, in the order of elementwise.def. Their derivatives follow in
 * the same order, and then the derivatives that write over the gradient. The last are the
 * operations of ops.def, in the table made by thunks.py.
 */

#include <stdatomic.h>
#include <time.h>

enum { OP_TABLE = sizeof op_table / sizeof *op_table };

static int run_any(int op, int n, mg_array *const *in, const mg_args *args, mg_arrays *out) {
    int count = mg_op_count();
    if (op < 0) return mg_fail_code(MG_EARG, op, 0);
    if (op < count) return op_made(out, n == 1 ? mg_unary(op, in[0]) : mg_binary(op, in[0], in[1]));
    if ((op -= count) < count) {
        if (mg_op_arity(op) == 1) return op_made(out, mg_unary_vjp(op, in[0], args->saved));
        return op_made_several(out, mg_binary_vjp(op, (int)args->ints[0], in[0], args->saved));
    }
    if ((op -= count) < count) {
        if (mg_op_arity(op) == 1) return op_made(out, mg_unary_vjp_over(op, in[0], args->saved));
        return op_made_several(out, mg_binary_vjp_over(op, (int)args->ints[0], in[0], args->saved));
    }
    if ((op -= count) < OP_TABLE) return op_table[op].run(in, args, out);
    return mg_fail_code(MG_EARG, op, 0);
}

/* ---- times ---- */

static atomic_int run_watched; /* how many measure times */
static _Thread_local int64_t run_begun, run_ended;

static int64_t run_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static MG_NOINLINE int run_timed(int op, int n, mg_array *const *in, const mg_args *args, mg_arrays *out) {
    int64_t begun = run_now();
    int code = run_any(op, n, in, args, out);
    run_ended = run_now();
    run_begun = begun;
    return code;
}

void mg_run_measure(int more) { atomic_fetch_add_explicit(&run_watched, more, memory_order_relaxed); }
int64_t mg_run_begun(void) { return run_begun; }
int64_t mg_run_ended(void) { return run_ended; }

int mg_run(int op, int n, mg_array *const *in, const mg_args *args, mg_arrays *out) {
    if (atomic_load_explicit(&run_watched, memory_order_relaxed)) return run_timed(op, n, in, args, out);
    return run_any(op, n, in, args, out);
}

/* ---- for cffi ---- */

int mg_call(int op, int n, mg_array *const *in, const int64_t *ints, const double *floats, mg_saved *saved,
            mg_arrays *out) {
    return mg_run(op, n, in, &(mg_args){ints, floats, saved}, out);
}

mg_array *mg_call_one(int op, int n, mg_array *const *in, const int64_t *ints, const double *floats,
                      mg_saved *saved) {
    mg_arrays out;
    return mg_call(op, n, in, ints, floats, saved, &out) ? NULL : out.made[0];
}

int mg_run_count(void) { return 3 * mg_op_count() + OP_TABLE; }

int mg_elementwise_count(void) { return mg_op_count(); }
int mg_elementwise_has_vjp(int op) { return mg_op_has_vjp(op); }

static const op_entry *op_found(int op) {
    int count = mg_op_count();
    return op >= 3 * count && op < mg_run_count() ? &op_table[op - 3 * count] : NULL;
}

const char *mg_run_name(int op) {
    const op_entry *found = op_found(op);
    if (op < 0 || op >= mg_run_count()) return NULL;
    return found ? found->name : mg_op_name(op % mg_op_count());
}

const char *mg_run_title(int op) {
    const op_entry *found = op_found(op);
    return found ? found->title : mg_run_name(op);
}

const char *mg_run_signature(int op) {
    const op_entry *found = op_found(op);
    if (found || op < 0 || op >= mg_run_count()) return found ? found->signature : NULL;
    bool unary = mg_op_arity(op % mg_op_count()) == 1;
    return op < mg_op_count() ? (unary ? "a:1" : "aa:1") : unary ? "ak:1" : "iak:n";
}

/* ---- table for the accelerator ---- */

const mg_core *mg_core_table(void) {
    static const mg_core core = {
        .run = mg_run,
        .run_count = mg_run_count,
        .run_name = mg_run_name,
        .run_title = mg_run_title,
        .run_signature = mg_run_signature,
        .elementwise_count = mg_elementwise_count,
        .error = mg_error,
        .release = mg_release,
        .item_float = mg_item_float,
        .item_int = mg_item_int,
        .real_at = mg_real_at,
        .whole_at = mg_whole_at,
        .contiguous_now = mg_contiguous_now,
        .alike = mg_alike,
        .overlaps_itself = mg_overlaps_itself,
        .version = mg_version,
        .pins = mg_pins,
        .writable = mg_writable,
        .buffer_id = mg_buffer_id,
        .sole_owner = mg_sole_owner,
        .seal = mg_seal,
        .share = mg_share,
        .set_owner = mg_set_owner,
        .save = mg_save,
        .save_as_is = mg_save_as_is,
        .unsave = mg_unsave,
        .saved_buffer = mg_saved_buffer,
        .set_gil_hook = mg_gil_set_hook,
        .cache_grant = mg_cache_grant,
    };
    return &core;
}
