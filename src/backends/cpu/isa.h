// Which instruction set the CPU backend uses: found once, when first asked. The environment
// variable SNUG_ISA (v2, v3, v4, v4_bf16, amx) lowers it, so that tests reach every path on one
// machine; it never raises it above what the processor has. oneDNN is held to onednn_isa().
#pragma once

#include <cstdint>
#include <string_view>

#include "base/words.h"

namespace snug::backends::cpu {

// Levels of x86-64, each containing the ones before: v2 = SSE4.2, v3 = AVX2 and FMA, v4 = AVX-512,
// v4_bf16 = v4 with AVX512_BF16 and AVX512_VNNI, amx = v4_bf16 with AMX tiles for bf16 products.
enum class Isa : uint8_t { v2, v3, v4, v4_bf16, amx };

constexpr auto words_of(Isa /*type*/) {
  return base::words<Isa>({{Isa::v2, "v2"},
                           {Isa::v3, "v3"},
                           {Isa::v4, "v4"},
                           {Isa::v4_bf16, "v4_bf16"},
                           {Isa::amx, "amx"}});
}
constexpr std::string_view name_of(Isa isa) { return base::word_of(isa); }

// The highest of those that this build has kernels for (SNUG_ISAS of its CMake cache). Throws
// UserError when SNUG_ISA holds an unknown name, the processor is older than x86-64-v2, or the
// build has kernels for later ones alone.
Isa detect_isa();

// bf16 matrix products run in hardware; below this level compute is fp32.
constexpr bool has_bf16_products(Isa isa) { return isa >= Isa::v4_bf16; }

// The level that a job holds oneDNN to on a processor of `isa`: never the tiles. Its tile kernels
// want inner dimensions of whole pairs, and round up others by rules that miss some: 2.6.3
// and 2.7.3 die of an illegal instruction for bf16 products with k = 63. Newer ones read what lies
// after a row whose length is no multiple of 32, so that a NaN there reaches other rows. On tiles
// oneDNN is left with bf16 products of which a dimension is below a tile's (product.h): too little
// to sort the shapes that are safe from those that are not.
constexpr Isa onednn_isa(Isa isa) { return isa < Isa::amx ? isa : Isa::v4_bf16; }

// The processor says how large its tiles are (leaf 0x1D). Some virtual machines offer AMX and leave
// that empty. Snug's own kernels take palette 1 as it is defined; oneDNN asks, configures palette
// 0, and its next instruction is illegal, so there not even a measurement may let it use tiles.
bool reports_tile_palette();

}  // namespace snug::backends::cpu
