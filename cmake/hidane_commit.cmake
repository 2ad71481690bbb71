# Writes OUT with the tree's commit, at each build; unchanged content keeps its time stamp, so that
# nothing is rebuilt for it. A `+` says that tracked files differ from the commit.
execute_process(COMMAND git describe --always --dirty=+ --abbrev=7 --exclude=*
                WORKING_DIRECTORY ${SOURCE_DIR} OUTPUT_VARIABLE commit ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
file(CONFIGURE OUTPUT ${OUT} CONTENT "#define HIDANE_COMMIT \"${commit}\"\n")
