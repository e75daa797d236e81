// Gives back the tile palette that some virtual machines leave out of CPUID although their
// processor has AMX.
//
// Leaf 0x1D is empty there, so whoever sizes its tiles by it (oneDNN, and with it PyTorch)
// configures tiles of no rows and dies of an illegal instruction. Loaded with LD_PRELOAD, this
// makes CPUID fault (arch_prctl), answers every leaf as the processor does, and leaf 0x1D as
// Intel's manual gives it for palette 1. Nothing else changes.
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

enum { tile_leaf = 0x1D, max_palette = 1 };

static void let_cpuid_fault(int fault) {
  syscall(SYS_arch_prctl, ARCH_SET_CPUID, (unsigned long)!fault);
}

static void answer(unsigned leaf, unsigned subleaf, unsigned registers[4]) {
  __cpuid_count(leaf, subleaf, registers[0], registers[1], registers[2], registers[3]);
  if (leaf == 0 && registers[0] < tile_leaf) registers[0] = tile_leaf;  // the highest leaf there is
  if (leaf != tile_leaf || registers[0] != 0 || subleaf > max_palette) return;
  if (subleaf == 0) {
    registers[0] = max_palette;
    return;
  }
  registers[0] = 8192 | 1024u << 16;  // bytes of all tiles, of one tile
  registers[1] = 64 | 8u << 16;       // bytes of a row, tiles
  registers[2] = 16;                  // rows
}

static struct sigaction before;

static void on_fault(int number, siginfo_t* info, void* context) {
  greg_t* state = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned char* instruction = (const unsigned char*)state[REG_RIP];
  const int faulted_at_cpuid =
      info->si_code == SI_KERNEL && instruction[0] == 0x0F && instruction[1] == 0xA2;
  if (!faulted_at_cpuid) {
    sigaction(number, &before, NULL);  // not ours: run it again, under whoever was there before
    return;
  }
  let_cpuid_fault(0);
  unsigned registers[4];
  answer((unsigned)state[REG_RAX], (unsigned)state[REG_RCX], registers);
  let_cpuid_fault(1);
  state[REG_RAX] = registers[0];
  state[REG_RBX] = registers[1];
  state[REG_RCX] = registers[2];
  state[REG_RDX] = registers[3];
  state[REG_RIP] += 2;
}

// Compilers and other helpers that a program starts catch faults themselves: they are left alone.
static int multiplies(const char* program) {
  return strstr(program, "snug") || strstr(program, "python");
}

__attribute__((constructor)) static void start(int count, char** arguments) {
  if (count < 1 || !multiplies(arguments[0])) return;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  let_cpuid_fault(1);
}
