# snug_card_archs(OUT): the architectures of the GPUs that are here, by their driver, as nvcc names them. Empty: there are none that Snug
# has kernels for.
function(snug_card_archs out)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE answer RESULT_VARIABLE status ERROR_QUIET)
  set(archs "")
  if(status EQUAL 0)
    string(REGEX MATCHALL "[0-9]+\\.[0-9]" capabilities "${answer}")
    list(TRANSFORM capabilities REPLACE "\\." "" OUTPUT_VARIABLE archs)
    list(FILTER archs EXCLUDE REGEX "^[1-7][0-9]$")
    list(TRANSFORM archs REPLACE "^90$" "90a")
    list(REMOVE_DUPLICATES archs)
  endif()
  set(${out} "${archs}" PARENT_SCOPE)
endfunction()
