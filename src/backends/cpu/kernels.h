// Vector kernels of the CPU backend: leaves without threads, allocation or errors, each over one block
// of rows or elements. Every file under kernels/ is compiled once for each instruction set (baseline
// x86-64-v2, v3 = AVX2, v4 = AVX-512, and v4 with AVX512_BF16) with SNUG_ISA naming the namespace; the set is
// chosen at run time. Kernel files include nothing but their own headers and <cstdint>: inline library code
// compiled for one instruction set must not leak into the others.
#pragma once
