/*
 * launcher.exe of the lab: the first part of each executable of the lab's payload for Wine hosts. The launcher starts
 * the lab's node program (lab/wine/standin/program), which is on the drive of every host, with its own path and
 * arguments, and returns the exit code of that program. Each executable of the payload is therefore a real, small
 * Windows program. It is in the process table under its own name and path, keeps its file in use, and can be killed.
 * The node program need not be copied with each executable.
 *
 * It simulates: containerd's shim, one process for each pod, which only waits until it is killed.
 * It does not simulate: anything else. If the launcher is killed, the node program that it started also ends, because
 * that program watches the launcher.
 */
#include <windows.h>

#define NODE L"C:\\ProgramData\\wmco-lab\\node.exe"

enum { LENGTH = 32768 };

/* arguments returns the part of a command line after the name of the program. */
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

/* is_shim reports whether a path is the path of containerd's shim. */
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
