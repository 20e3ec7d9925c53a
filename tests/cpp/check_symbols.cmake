# Fails if the objects of an instruction set define a weak symbol outside its namespace: the linker could use such a
# function, compiled for a newer processor, in all code.
execute_process(COMMAND ${NM} --demangle --defined-only ${OBJECTS} OUTPUT_VARIABLE symbols RESULT_VARIABLE status)
if(NOT status EQUAL 0 OR symbols STREQUAL "")
  message(FATAL_ERROR "${NM} shows no symbols of ${OBJECTS}")
endif()
string(REPLACE "\n" ";" lines "${symbols}")
foreach(line IN LISTS lines)
  # Weak functions and objects (W, V) and unique globals (u). GCC names a template's return type first; nm cannot
  # demangle some functions of lambdas.
  if(line MATCHES "^[0-9a-f]+ [WVu] " AND NOT line MATCHES "dmlops::${ISA}::|_ZZ?NK?6dmlops[0-9]+${ISA}")
    string(APPEND foreign "\n  ${line}")
  endif()
endforeach()
if(foreign)
  message(FATAL_ERROR "weak symbols outside dmlops::${ISA}:${foreign}")
endif()
