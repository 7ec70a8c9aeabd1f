/*
 * A plugin for qemu-user 7.2: counts the instructions of a program between marks.
 *
 * A mark is a function whose name begins with "mark_". From the call of mark_encoder to that of the next mark,
 * all instructions count towards "encoder". At the end of the program, stderr gets a line for each part:
 *
 *     part NAME instructions COUNT
 *
 * Debian packages no header for plugins, so the declarations stand here. They are those of plugin interface 1.
 * The program must have one thread.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0 };
enum { ADD_U64 = 0 };

extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t,
        void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int flags,
        void *data);
extern void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int operation, void *counter,
        uint64_t number);
extern void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *data);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern const char *qemu_plugin_insn_symbol(const struct qemu_plugin_insn *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

#define MARK "mark_"
#define PARTS_MAX 16

struct part {
    char name[64];
    uint64_t instructions;
};
static struct part parts[PARTS_MAX] = {{"start", 0}};
static size_t part_count = 1;
static struct part *current = parts;
static uint64_t executed;
static uint64_t executed_at_mark;

static void on_mark(unsigned vcpu, void *part)
{
    (void)vcpu;
    current->instructions += executed - executed_at_mark;
    executed_at_mark = executed;
    current = part;
}

static struct part *find_part(const char *name)
{
    for (size_t i = 0; i < part_count; i++) {
        if (strcmp(parts[i].name, name) == 0) {
            return &parts[i];
        }
    }
    if (part_count == PARTS_MAX) {
        return NULL;
    }
    snprintf(parts[part_count].name, sizeof parts[part_count].name, "%s", name);
    return &parts[part_count++];
}

static void on_translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    const char *symbol = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(block, 0));
    if (symbol && strncmp(symbol, MARK, sizeof MARK - 1) == 0) {
        struct part *part = find_part(symbol + sizeof MARK - 1);
        if (part) {
            qemu_plugin_register_vcpu_tb_exec_cb(block, on_mark, NO_REGISTERS, part);
        }
    }
    qemu_plugin_register_vcpu_tb_exec_inline(block, ADD_U64, &executed, qemu_plugin_tb_n_insns(block));
}

static void on_exit(qemu_plugin_id_t id, void *data)
{
    (void)id;
    (void)data;
    on_mark(0, current);
    for (size_t i = 0; i < part_count; i++) {
        fprintf(stderr, "part %s instructions %" PRIu64 "\n", parts[i].name, parts[i].instructions);
    }
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc,
        char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, on_exit, NULL);
    return 0;
}
