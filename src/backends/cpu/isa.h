// The instruction set that the CPU backend uses, detected once, on first use. The environment
// variable SNUG_ISA (v2, v3, v4, v4_bf16, amx) lowers it, so that tests reach every path on one
// machine; it never raises it above what the processor has. oneDNN is limited to onednn_isa().
#pragma once

#include <cstdint>
#include <string_view>

#include "base/words.h"

namespace snug::backends::cpu {

// Levels of x86-64, each including the ones before it: v2 = SSE4.2, v3 = AVX2 and FMA, v4 =
// AVX-512, v4_bf16 = v4 with AVX512_BF16 and AVX512_VNNI, amx = v4_bf16 with AMX tiles for bf16
// products.
enum class Isa : uint8_t { v2, v3, v4, v4_bf16, amx };

constexpr auto words_of(Isa /*type*/) {
  return base::words<Isa>({{Isa::v2, "v2"},
                           {Isa::v3, "v3"},
                           {Isa::v4, "v4"},
                           {Isa::v4_bf16, "v4_bf16"},
                           {Isa::amx, "amx"}});
}
constexpr std::string_view name_of(Isa isa) { return base::word_of(isa); }

// The highest level of the processor for which this build has kernels (SNUG_ISAS of its CMake
// cache). Throws UserError when SNUG_ISA is an unknown name, when the processor is older than
// x86-64-v2, or when the build only has kernels for higher levels.
Isa detect_isa();

// Whether the hardware multiplies bf16 matrices; below this level compute is fp32.
constexpr bool has_bf16_products(Isa isa) { return isa >= Isa::v4_bf16; }

// The level to which a job limits oneDNN on a processor of level `isa`: AMX tiles are never used.
// oneDNN's tile kernels need an even inner dimension and pad others by rules that miss some cases:
// 2.6.3 and 2.7.3 die of an illegal instruction for bf16 products with k = 63. Newer versions read
// beyond the end of a row whose length is not a multiple of 32, so that a NaN there reaches other
// rows. With tiles available, oneDNN would only get bf16 products with a dimension smaller than a
// tile (product.h), which is too little to justify sorting safe shapes from unsafe ones.
constexpr Isa onednn_isa(Isa isa) { return isa < Isa::amx ? isa : Isa::v4_bf16; }

// Whether the processor reports the sizes of its tiles (CPUID leaf 0x1D). Some virtual machines
// offer AMX and leave this leaf empty. Snug's own kernels use palette 1 as it is defined. oneDNN
// reads the leaf, configures palette 0, and then executes an illegal instruction, so there not even
// a benchmark may let it use tiles.
bool reports_tile_palette();

}  // namespace snug::backends::cpu
