# Reads `go test -v` and keeps what a person wants to see: one line for a package that passes; of one that fails what its failed tests
# printed, and what belongs to no test, such as a panic; what does not compile; and at the end what was skipped and what has failed. The last
# line is one of go test's own.

/^\? +\t/ { forget(); next }
/^ok +\t/ || /^\t.*\tcoverage: / { forget(); verdict($0); next }
/^FAIL\t/ { show($2); verdict($0); failed = 1; next }
/^FAIL$/ { failed = 1; broken = 0; next }
/^PASS$/ { broken = 0; next }
/^=== (RUN|PAUSE|CONT|NAME) / { broken = 0; test = $3; next }

# The compiler's complaints come ahead of all packages, go's own in between.
/^# / { broken = 1 }
/^go: downloading / { next }
broken || /^go: / { print; fflush(); next }

/^ *--- PASS: / { passed++; next }
/^ *--- FAIL: / { failures++; bad[$3] = 1; anyBad = 1; hold($3, $0); next }
/^ *--- SKIP: / { skipped++; skips[++skipLines] = $3; next }
/SKIPPED: / { skips[++skipLines] = substr($0, index($0, "SKIPPED: ")) }

# What comes behind these is of the whole program, whichever test was the last to say something.
/^panic: / || /^fatal error: / || /^WARNING: DATA RACE/ || /^==================$/ { test = "" }

# The rest is held until the verdict on its package is known.
{ hold(test, $0) }

function hold(of, line) {
    held[++lines] = line
    owner[lines] = of
}

function forget() {
    lines = 0
    test = ""
    anyBad = 0
    split("", bad)
}

# A verdict is printed when the next one comes, so that the summary fits in before the last one.
function verdict(line) {
    if (last != "") { print last; fflush() }
    last = line
    broken = 0
}

# Where no test has failed, something else has: all is shown.
function show(package,  i) {
    if (last != "") { print last; last = "" }
    for (i = 1; i <= lines; i++) {
        if (!anyBad || owner[i] == "" || (owner[i] in bad)) print held[i]
        if (package != "" && held[i] ~ /^--- FAIL: /) failedTests[++failedLines] = package " " owner[i]
    }
    forget()
}

END {
    if (lines > 0) show("")
    if (skipLines > 0) {
        print "skipped on this machine:"
        for (i = 1; i <= skipLines; i++) print "  " skips[i]
    }
    if (failedLines > 0) {
        print "failed (build/test.log has all that was printed):"
        for (i = 1; i <= failedLines; i++) print "  " failedTests[i]
    }
    printf "%d tests and cases passed, %d failed, %d skipped\n", passed, failures, skipped
    if (last != "") print last
    if (failed) print "FAIL"
    exit failed
}
