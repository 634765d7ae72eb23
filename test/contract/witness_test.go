package contract_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/windows-machine-config/wmco/test/witness/question"
)

// Wine and the lab's simulated components answer some of the witness' questions as the operator assumes. Their SFTP
// server, dism.exe and firewall policies differ from Windows.
func TestWitness_AnswersUnderWine(t *testing.T) {
	ctx := requireWine(t)
	program := filepath.Join(t.TempDir(), "witness.exe")
	if output, err := forWindows(ctx, "build", "-o", program, "./test/witness").CombinedOutput(); err != nil {
		t.Fatalf("build the witness: %v\n%s", err, output)
	}
	h := bootHost(ctx, t, "witness-a", "10.87.0.9", map[string]string{`C:\witness.exe`: program}, enabled)
	for range 2 { // the second run would find leftovers of the first run
		result, err := h.Exec(ctx, `C:\witness.exe -change -out C:\answers`)
		t.Logf("exit status %d\n%s%s", result.ExitCode, result.Stdout, result.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		if result.ExitCode != 1 {
			t.Errorf("exit status %d, although A1 is contradicted", result.ExitCode)
		}
	}
	dir, err := h.Path(`C:\answers`)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range question.All() {
		d, err := q.Read(os.DirFS(dir))
		if err != nil {
			t.Error(err)
			continue
		}
		if want, known := underWine[q.ID]; known && d.Verdict != want {
			t.Errorf("%v, want %s", d, want)
		}
	}
}

// underWine contains the verdicts on the answers of Wine and of simulated components. Unlike on Windows, the lab's
// SSH server is not a service.
var underWine = map[string]question.Verdict{"N1": question.Holds, "N2": question.Holds, "N3": question.Holds, "A1": question.Contradicted}
