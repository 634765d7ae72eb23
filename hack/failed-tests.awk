# Reads `go test -v` and names each test that has failed, with its package first: "package test". Where something else has failed, such as a build
# or a whole program, it ends with an error.

/^panic: / || /^fatal error: / || /^WARNING: DATA RACE/ { broken = 1 }
/^--- FAIL: / { tests[++n] = $3 }
/^ok +\t/ { n = 0 }
/^FAIL\t/ {
    if (n == 0) broken = 1
    for (i = 1; i <= n; i++) print $2 " " tests[i]
    n = 0
}
END { exit broken }
