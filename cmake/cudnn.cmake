# SNUG_CUDNN: AUTO builds attention through cuDNN where its headers and those of its frontend are found, ON demands them,
# OFF leaves it away. They are looked for in the toolkit, the distribution, build/cudnn_frontend
# (scripts/fetch_cudnn_frontend) and Python's packages. Sets SNUG_CUDNN_FOUND and SNUG_CUDNN_INCLUDE_DIRS.
set(SNUG_CUDNN AUTO CACHE STRING "Attention through cuDNN: AUTO, ON or OFF")
set(SNUG_CUDNN_FOUND FALSE)
if(SNUG_CUDNN STREQUAL "OFF" OR NOT SNUG_CUDA_FOUND)
  return()
endif()

execute_process(COMMAND python3 -c "import sysconfig; print(sysconfig.get_path('purelib'))"
  OUTPUT_VARIABLE python_packages OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
find_path(SNUG_CUDNN_INCLUDE cudnn.h
  HINTS ${CUDAToolkit_INCLUDE_DIRS} ${python_packages}/nvidia/cudnn/include)
find_path(SNUG_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
  HINTS ${PROJECT_SOURCE_DIR}/build/cudnn_frontend/include ${python_packages}/include)
if(SNUG_CUDNN_INCLUDE AND SNUG_CUDNN_FRONTEND_INCLUDE)
  set(SNUG_CUDNN_FOUND TRUE)
  set(SNUG_CUDNN_INCLUDE_DIRS ${SNUG_CUDNN_FRONTEND_INCLUDE} ${SNUG_CUDNN_INCLUDE})
  message(STATUS "CUDA backend: attention through cuDNN")
elseif(SNUG_CUDNN STREQUAL "ON")
  message(FATAL_ERROR "SNUG_CUDNN=ON, and cudnn.h or cudnn_frontend.h (package nvidia-cudnn-frontend) is not found")
else()
  message(STATUS "CUDA backend: attention by own kernels alone, cudnn.h or cudnn_frontend.h is not found")
endif()
