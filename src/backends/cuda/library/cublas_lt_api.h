// The header of cuBLASLt, only for types and declarations: none of its functions is linked. The
// emulator replaces this file by one with the same path.
#pragma once

#include <cublasLt.h>
