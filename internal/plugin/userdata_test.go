package plugin

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

func readGolden(t *testing.T, platform string) []byte {
	t.Helper()
	script, err := os.ReadFile("../userdata/testdata/" + strings.ToLower(platform) + ".ps1")
	if err != nil {
		t.Fatal(err)
	}
	return script
}

func TestScriptForPlatform_KeepsKey(t *testing.T) {
	for _, platform := range platforms {
		script, err := scriptForPlatform(readGolden(t, "AWS"), string(platform))
		if err != nil {
			t.Errorf("%s: %v", platform, err)
			continue
		}
		if !bytes.Equal(script, readGolden(t, string(platform))) {
			t.Errorf("%s: it is another script than the operator's", platform)
		}
	}
}

func TestScriptForPlatform_ForeignScriptRejected(t *testing.T) {
	if _, err := scriptForPlatform([]byte("<powershell>\nhello\n"), "Azure"); err == nil {
		t.Error("it was taken")
	}
}
