# hidane_embed(<header> <namespace> <file>...): a generated header with each text file as a
# std::string_view constant: report_charts.js is kReportChartsJs. Edited files are embedded anew
# by the next build.
function(hidane_embed header namespace)
  set(text "#pragma once\n#include <string_view>\n\nnamespace ${namespace} {\n")
  foreach(path ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
    string(REGEX REPLACE "[._]" ";" words ${path})
    set(name k)
    foreach(word ${words})
      string(SUBSTRING ${word} 0 1 first)
      string(SUBSTRING ${word} 1 -1 rest)
      string(TOUPPER ${first} first)
      string(APPEND name ${first}${rest})
    endforeach()
    file(READ ${path} content)
    string(APPEND text "inline constexpr std::string_view ${name} =\n    R\"embedded(${content})embedded\";\n")
  endforeach()
  string(APPEND text "}\n")
  file(CONFIGURE OUTPUT ${header} CONTENT "@text@" @ONLY)  # unchanged: not written
endfunction()
