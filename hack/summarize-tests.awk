# Reads `go test -v` and keeps what a person wants to see: one line for a package that passes, everything for one that
# fails, what does not compile, and at the end what was skipped. The last line is one of go test's own.

/^\? +\t/ { lines = 0; next }
/^ok +\t/ || /^\t.*\tcoverage: / { lines = 0; verdict($0); next }
/^FAIL\t/ { show(); verdict($0); failed = 1; next }
/^FAIL$/ { failed = 1; broken = 0; next }
/^PASS$/ || /^=== (RUN|PAUSE|CONT|NAME) / { broken = 0; next }

# The compiler's complaints come ahead of all packages, go's own in between.
/^# / { broken = 1 }
/^go: downloading / { next }
broken || /^go: / { print; fflush(); next }

/^ *--- PASS: / { passed++; next }
/^ *--- FAIL: / { failures++ }
/^ *--- SKIP: / { skipped++; skips[++skipLines] = $3 }
/SKIPPED: / { skips[++skipLines] = substr($0, index($0, "SKIPPED: ")) }

# The rest is held until the verdict on its package is known.
{ held[++lines] = $0 }

# A verdict is printed when the next one comes, so that the summary fits in before the last one.
function verdict(line) {
    if (last != "") { print last; fflush() }
    last = line
    broken = 0
}

function show(  i) {
    if (last != "") { print last; last = "" }
    for (i = 1; i <= lines; i++) print held[i]
    lines = 0
}

END {
    if (lines > 0) show()
    if (skipLines > 0) {
        print "skipped on this machine:"
        for (i = 1; i <= skipLines; i++) print "  " skips[i]
    }
    printf "%d tests and cases passed, %d failed, %d skipped\n", passed, failures, skipped
    if (last != "") print last
    if (failed) print "FAIL"
    exit failed
}
