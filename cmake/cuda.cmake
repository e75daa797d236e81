# SNUG_CUDA: AUTO builds the CUDA backend where the toolkit is found, ON demands it, OFF leaves it away.
# SNUG_CUDA_ARCHS: the architectures of its kernels, by commas; empty: those of the GPUs that are here, or 90a where there is none.
# Sets SNUG_CUDA_FOUND and, as a list, SNUG_CUDA_ARCHITECTURES.
set(SNUG_CUDA AUTO CACHE STRING "Build the CUDA backend: AUTO, ON or OFF")
set(SNUG_CUDA_ARCHS "" CACHE STRING "Architectures of the CUDA backend's kernels, by commas; empty: of the GPUs that are here, or 90a")
set(SNUG_CUDA_FOUND FALSE CACHE INTERNAL "The CUDA backend is built")
if(SNUG_CUDA STREQUAL "OFF")
  return()
endif()

include(${CMAKE_CURRENT_LIST_DIR}/card_archs.cmake)
string(REPLACE "," ";" archs "${SNUG_CUDA_ARCHS}")
if(NOT archs)
  snug_card_archs(archs)
endif()
if(NOT archs)
  set(archs 90a)
endif()
set(SNUG_CUDA_ARCHITECTURES "${archs}" CACHE INTERNAL "Architectures that the CUDA backend's kernels are built for")

find_package(CUDAToolkit 12.8 QUIET)
if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  # Beforehand, or CMake tries an architecture that newer toolkits no longer have.
  set(CMAKE_CUDA_ARCHITECTURES ${SNUG_CUDA_ARCHITECTURES})
  enable_language(CUDA)
  # CMake before 3.26 does not know that nvcc has C++20.
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  set(SNUG_CUDA_FOUND TRUE CACHE INTERNAL "The CUDA backend is built")
  message(STATUS "CUDA backend: toolkit ${CUDAToolkit_VERSION}, architectures ${SNUG_CUDA_ARCHITECTURES}")
elseif(SNUG_CUDA STREQUAL "ON")
  message(FATAL_ERROR "SNUG_CUDA=ON, and no CUDA toolkit of version 12.8 or later is found")
else()
  message(STATUS "CUDA backend: not built, no CUDA toolkit of version 12.8 or later is found")
endif()
