// The header of cuBLASLt, for types and declarations alone: no function of it is linked. The
// emulator has a file of the same path in its place.
#pragma once

#include <cublasLt.h>
