// The tensors that tests of shape rules take operands from.
#pragma once

namespace snug::program {

// 8 tokens, width 4, vocabulary 16, 2 heads of 2 with 1 key head, 3 segments.
inline constexpr const char* kTensors = R"(program shapes
tensor x (8, 4) bf16
tensor y (8, 4) bf16
tensor x32 (8, 4) f32
tensor y32 (8, 4) f32
tensor x64 (8, 4) f64
tensor y64 (8, 4) f64
tensor x16 (8, 4) f16
tensor xi (8, 4) i32
tensor wide (8, 6) bf16
tensor wide2 (8, 6) bf16
tensor short (4, 8) bf16
tensor square (4, 4) bf16
tensor square32 (4, 4) f32
tensor flat (4) bf16
tensor flat32 (4) f32
tensor flat6 (6) bf16
tensor w (6, 4) bf16
tensor wt (4, 6) bf16
tensor w32 (6, 4) f32
tensor head (16, 4) bf16
tensor head32 (16, 4) f32
tensor logits (8, 16) f32
tensor logits16 (8, 16) bf16
tensor dlogits (8, 16) f32
tensor ids (8) i32
tensor ids4 (4) i32
tensor ids64 (8) i64
tensor random (2) i32
tensor bounds (3, 2) i32
tensor bounds3 (3, 3) i32
tensor bounds4 (4, 2) i32
tensor k (8, 2) bf16
tensor v (8, 2) bf16
tensor k32 (8, 2) f32
tensor dk (8, 2) bf16
tensor dv (8, 2) bf16
tensor lse (2, 8) f32
tensor lse64 (2, 8) f64
tensor lse16 (2, 8) bf16
tensor k8 (8, 2) u8
tensor v8 (8, 2) u8
tensor k_scales (1, 8) f32
tensor v_scales (1, 8) f32
tensor cache8 (32, 4) u8
tensor cache_scales (2, 32) f32
tensor three_scales (3, 32) f32
tensor losses (8) f32
tensor sinks (2) bf16
tensor one (1) f32
tensor two (1) f32
tensor three (1) f32
tensor onei (1) i32
tensor frequency (1) f32
tensor table (8, 2) f32
tensor table16 (8, 2) bf16
tensor cache (32, 4) bf16
tensor cache32 (32, 4) f32
tensor w32m (6, 4) f32
tensor flat6f (6) f32
tensor row32 (4) f32
tensor m (4, 4) f32
tensor v32 (4, 4) f32
tensor master (4, 4) f32
tensor m16 (4, 4) bf16
tensor v16 (4, 4) bf16
tensor column32 (8, 1) f32
)";

}  // namespace snug::program
