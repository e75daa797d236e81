#include "backends/cpu/isa.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>

#include "base/error.h"

namespace snug::backends::cpu {
namespace {

bool has_v2() { return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"); }

bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

bool has_v4() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

struct CpuidRegisters {
  uint32_t eax;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
};

CpuidRegisters cpuid(uint32_t leaf) {
  CpuidRegisters out{.eax = leaf};
  __asm__("cpuid" : "+a"(out.eax), "=b"(out.ebx), "+c"(out.ecx), "=d"(out.edx));
  return out;
}

// Leaf 7, subleaf 0, EDX bit 22: AMX-BF16. Linux allows the tiles only to a process that has asked
// for them (arch_prctl ARCH_REQ_XCOMP_PERM, state 18).
bool has_amx_bf16() {
  if ((cpuid(7).edx >> 22 & 1U) == 0) return false;
  constexpr long kRequestPermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

Isa processor_isa() {
  __builtin_cpu_init();
  if (!has_v2())
    base::throw_user_error(
        "This processor is older than x86-64-v2 (SSE4.2); Snug's CPU backend needs at least that. "
        "Run on a machine built after 2009.");
  if (!has_v3()) return Isa::v2;
  if (!has_v4()) return Isa::v3;
  if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vnni"))
    return Isa::v4;
  return has_amx_bf16() ? Isa::amx : Isa::v4_bf16;
}

Isa allowed_isa(Isa processor) {
  const char* wanted = std::getenv("SNUG_ISA");
  if (wanted == nullptr || *wanted == '\0') return processor;
  const auto found = base::from_word<Isa>(wanted);
  if (!found)
    base::throw_user_error(
        "The environment variable SNUG_ISA is '{}'; expected one of {}. Unset it to use what the "
        "processor has.",
        wanted, fmt::join(base::all_words<Isa>(), ", "));
  return std::min(processor, *found);
}

// The instruction sets that this build has kernels for, the lowest first.
#define X(name) Isa::name,
constexpr std::array kBuilt{SNUG_BUILT_ISAS};
#undef X

Isa built_isa(Isa most) {
  const auto after = std::ranges::upper_bound(kBuilt, most);
  if (after == kBuilt.begin())
    base::throw_user_error(
        "This build has kernels for x86-64-{} and later, and x86-64-{} is what there is to run on; "
        "run 'make build', which compiles those of every processor.",
        name_of(kBuilt.front()), name_of(most));
  return *std::prev(after);
}

}  // namespace

Isa detect_isa() {
  static const Isa isa = built_isa(allowed_isa(processor_isa()));
  return isa;
}

// Leaf 0x1D, subleaf 0, EAX: the number of the highest palette.
bool reports_tile_palette() {
  constexpr uint32_t kTileLeaf = 0x1D;
  return cpuid(0).eax >= kTileLeaf && cpuid(kTileLeaf).eax >= 1;
}

}  // namespace snug::backends::cpu
