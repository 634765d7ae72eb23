# Reads `go test -v` and keeps what a person wants to see: one line for a package that passes; of one that fails what its failed tests
# printed, and what belongs to no test, such as a panic; what does not compile; and at the end what was skipped and what has failed. The last
# line is one of go test's own. A line "AGAIN package test" announces that a test that has failed is run again by itself: it is named at the end
# even if it passes then.

/^\? +\t/ { forget(); next }
/^ok +\t/ { forgive($2); forget(); verdict($0); next }
/^\t.*\tcoverage: / { forget(); verdict($0); next }
/^FAIL\t/ { failed[$2] = 1; show($2); verdict($0); next }
/^FAIL$/ { broken = 0; next }
/^AGAIN / { again[$2 " " $3] = 1; next }
/^PASS$/ { broken = 0; next }
/^=== (RUN|PAUSE|CONT|NAME) / { broken = 0; test = $3; next }

# The compiler's complaints come ahead of all packages, go's own in between.
/^# / { broken = 1 }
/^go: downloading / { next }
broken || /^go: / { print; fflush(); next }

/^ *--- PASS: / { passed++; good[$3] = 1; next }
/^ *--- FAIL: / { failures++; split($3, path, "/"); failuresOf[path[1]]++; bad[$3] = 1; anyBad = 1; hold($3, $0); next }
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
    split("", good)
    split("", failuresOf)
}

# A package has failed no more when each of its tests that have failed was run again, and has passed.
function forgive(package,  i, words, n) {
    if (!(package in failed)) return
    for (i = 1; i <= failedLines; i++) {
        if (failedPackage[i] != package) continue
        split(failedTests[i], words, " ")
        if (!(failedTests[i] in again) || !(words[2] in good)) return
        n++
    }
    if (n == 0) return
    for (i = 1; i <= failedLines; i++) {
        if (failedPackage[i] != package) continue
        failures -= failedCount[i]
        failedPackage[i] = ""
        forgiven[++forgivenLines] = failedTests[i]
    }
    delete failed[package]
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
        if (package != "" && held[i] ~ /^--- FAIL: /) {
            failedTests[++failedLines] = package " " owner[i]
            failedPackage[failedLines] = package
            failedCount[failedLines] = failuresOf[owner[i]]
        }
    }
    forget()
}

END {
    if (lines > 0) show("")
    if (skipLines > 0) {
        print "skipped on this machine:"
        for (i = 1; i <= skipLines; i++) print "  " skips[i]
    }
    if (forgivenLines > 0) {
        print "failed, and passed when run again by itself (build/test.log has both; why is worth a look):"
        for (i = 1; i <= forgivenLines; i++) print "  " forgiven[i]
    }
    for (i = 1; i <= failedLines; i++) {
        if (failedPackage[i] == "" || (failedTests[i] in named)) continue
        if (!anyNamed++) print "failed (build/test.log has all that was printed):"
        named[failedTests[i]] = 1
        print "  " failedTests[i]
    }
    printf "%d tests and cases passed, %d failed, %d skipped\n", passed, failures, skipped
    if (last != "") print last
    for (package in failed) anyFailed = 1
    if (anyFailed) print "FAIL"
    exit anyFailed
}
