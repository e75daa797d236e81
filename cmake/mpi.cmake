# SNUG_MPI: AUTO builds libsnug_mpi.so where MPI is found, ON demands it, OFF leaves it away. Sets SNUG_MPI_FOUND. The binary
# opens the library only where an MPI launcher started it.
set(SNUG_MPI AUTO CACHE STRING "Ranks that are processes of MPI: AUTO, ON or OFF")
set(SNUG_MPI_FOUND FALSE)
if(SNUG_MPI STREQUAL "OFF")
  return()
endif()

find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  set(SNUG_MPI_FOUND TRUE)
  message(STATUS "MPI: ${MPI_CXX_LIBRARIES}")
elseif(SNUG_MPI STREQUAL "ON")
  message(FATAL_ERROR "SNUG_MPI=ON, and no MPI is found (libopenmpi-dev)")
else()
  message(STATUS "MPI: not found (libopenmpi-dev), so ranks are not built")
endif()
