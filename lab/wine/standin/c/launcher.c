/*
 * launcher.exe of the lab: what each executable of the lab's payload for Wine hosts begins with. It starts the lab's node program
 * (lab/wine/standin/program), which lies on the drive of every host, with its own path and arguments, and ends with that program's
 * exit code. So an executable of the payload is a real, small Windows program that is in the process table under its own name and
 * path, holds its file in use and can be killed, and the program that does the work need not be sent with each of them.
 *
 * It simulates: containerd's shim, of which there is one for each pod; it only waits until it is killed.
 * It does not simulate: anything else. When it is killed, the node program that it started ends too: that program watches it.
 */
#include <windows.h>

#define NODE L"C:\\ProgramData\\wmco-lab\\node.exe"

enum { LENGTH = 32768 };

/* arguments is what follows the program's name on a command line. */
static const WCHAR *arguments(const WCHAR *line) {
    WCHAR end = *line == L'"' ? L'"' : L' ';
    if (*line == L'"') line++;
    while (*line != 0 && *line != end) line++;
    if (*line == L'"') line++;
    while (*line == L' ' || *line == L'\t') line++;
    return line;
}

/* say writes to standard error. */
static void say(const char *text) {
    DWORD wrote;
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), text, (DWORD)lstrlenA(text), &wrote, NULL);
}

/* is_shim tells whether a path is that of containerd's shim. */
static int is_shim(const WCHAR *path) {
    static const WCHAR name[] = L"containerd-shim-";
    const WCHAR *base = path;
    for (const WCHAR *at = path; *at != 0; at++) {
        if (*at == L'\\') base = at + 1;
    }
    return CompareStringOrdinal(base, ARRAYSIZE(name) - 1, name, ARRAYSIZE(name) - 1, TRUE) == CSTR_EQUAL;
}

int main(void) {
    static WCHAR path[LENGTH], line[LENGTH];
    const WCHAR *rest = arguments(GetCommandLineW());
    STARTUPINFOW start = {.cb = sizeof start, .dwFlags = STARTF_USESTDHANDLES};
    PROCESS_INFORMATION child;
    DWORD code = 1;
    GetModuleFileNameW(NULL, path, LENGTH);
    if (is_shim(path) && *rest == L'-' && lstrcmpW(rest, L"--version") != 0 && lstrcmpW(rest, L"-v") != 0) Sleep(INFINITE);
    if (lstrlenW(NODE) + lstrlenW(path) + lstrlenW(rest) + 8 > LENGTH) return 1;
    lstrcpyW(line, L"\"" NODE L"\" \"");
    lstrcatW(line, path);
    lstrcatW(line, L"\" ");
    lstrcatW(line, rest);
    start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
    start.hStdOutput = GetStdHandle(STD_OUTPUT_HANDLE);
    start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    if (!CreateProcessW(NODE, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &child)) {
        say("the lab's node program C:\\ProgramData\\wmco-lab\\node.exe cannot be started\r\n");
        return 1;
    }
    WaitForSingleObject(child.hProcess, INFINITE);
    GetExitCodeProcess(child.hProcess, &code);
    return (int)code;
}
