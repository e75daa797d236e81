// Gives back the tile palette that some virtual machines leave out of CPUID although their
// processor has AMX.
//
// Leaf 0x1D is empty there, so whoever sizes its tiles by it (oneDNN, and with it PyTorch)
// configures tiles of no rows and dies of an illegal instruction. Loaded with LD_PRELOAD, this
// makes CPUID fault (arch_prctl), answers every leaf as the processor does, and leaf 0x1D as
// Intel's manual gives it for palette 1. Nothing else changes, and nothing at all where the kernel
// cannot let CPUID fault.
#include <asm/prctl.h>
#include <cpuid.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

namespace {

constexpr unsigned kTileLeaf = 0x1D;
constexpr unsigned kPalette = 1;

void let_cpuid_fault(bool fault) { syscall(SYS_arch_prctl, ARCH_SET_CPUID, fault ? 0UL : 1UL); }

struct Registers {
  unsigned a, b, c, d;
};

Registers answer(unsigned leaf, unsigned subleaf) {
  Registers registers{};
  __cpuid_count(leaf, subleaf, registers.a, registers.b, registers.c, registers.d);
  if (leaf == 0 && registers.a < kTileLeaf) registers.a = kTileLeaf;  // the highest leaf there is
  if (leaf != kTileLeaf || registers.a != 0 || subleaf > kPalette) return registers;
  if (subleaf == 0) return {.a = kPalette, .b = 0, .c = 0, .d = 0};
  return {.a = 8192 | 1024U << 16,  // bytes of all tiles, of one tile
          .b = 64 | 8U << 16,       // bytes of a row, tiles
          .c = 16,                  // rows
          .d = 0};
}

struct sigaction before;

void on_fault(int number, siginfo_t* info, void* context) {
  greg_t* state = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  const auto* instruction = reinterpret_cast<const unsigned char*>(state[REG_RIP]);
  const bool is_cpuid =
      info->si_code == SI_KERNEL && instruction[0] == 0x0F && instruction[1] == 0xA2;
  if (!is_cpuid) {
    sigaction(number, &before, nullptr);  // not ours: run it again, under whoever was there before
    return;
  }
  let_cpuid_fault(false);
  const Registers registers =
      answer(static_cast<unsigned>(state[REG_RAX]), static_cast<unsigned>(state[REG_RCX]));
  let_cpuid_fault(true);
  state[REG_RAX] = registers.a;
  state[REG_RBX] = registers.b;
  state[REG_RCX] = registers.c;
  state[REG_RDX] = registers.d;
  state[REG_RIP] += 2;
}

// Compilers and other helpers that a program starts catch faults themselves: they are left alone.
bool multiplies(const char* program) {
  return std::strstr(program, "snug") != nullptr || std::strstr(program, "python") != nullptr;
}

__attribute__((constructor)) void start(int count, char** arguments) {
  if (count < 1 || !multiplies(arguments[0])) return;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &before);
  let_cpuid_fault(true);
}

}  // namespace
