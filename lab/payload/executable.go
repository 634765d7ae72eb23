// Package payload makes the lab's payload: the real agent, and small stand-ins for everything else that a Windows node
// runs.
package payload

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
)

// executableMagic begins a stand-in: the two letters of every Windows executable, and a line that says what it is.
const executableMagic = "MZwmco-lab-stand-in\n"

// Executable describes the program that a stand-in replaces. It is the second line of the file.
type Executable struct {
	Component string `json:"component"` // "kubelet"
	File      string `json:"file"`      // "kubelet.exe"
	Version   string `json:"version"`   // "v1.36.3"
	Size      int    `json:"size"`      // of the whole file, so that a part of one is not taken for it
	Defect    Defect `json:"defect,omitempty"`
}

// Defect is the fault of a program; "" for none. Only the kubelet has others than Exits.
type Defect string

// Defects.
const (
	// DefectExits ends the program with an error as soon as it is started.
	DefectExits Defect = "exits"
	// DefectUnhealthy leaves the program running, and its health endpoint says that it does not work.
	DefectUnhealthy Defect = "unhealthy"
	// DefectNotReady leaves the program healthy, and it says of its Node that it is not Ready.
	DefectNotReady Defect = "not-ready"
)

// ReadExecutable reads the description from a file. A file that is no stand-in, or incomplete, is an error.
func ReadExecutable(content []byte) (Executable, error) {
	rest, ok := bytes.CutPrefix(content, []byte(executableMagic))
	if !ok {
		return Executable{}, fmt.Errorf("it is no stand-in of the lab")
	}
	line, _, ok := bytes.Cut(rest[:min(len(rest), 1024)], []byte("\n"))
	if !ok {
		return Executable{}, fmt.Errorf("the stand-in was cut off in its header")
	}
	var e Executable
	if err := json.Unmarshal(line, &e); err != nil {
		return Executable{}, fmt.Errorf("read the stand-in's header: %w", err)
	}
	if e.Size != len(content) {
		return Executable{}, fmt.Errorf("the stand-in for %s has %d bytes and should have %d", e.File, len(content), e.Size)
	}
	return e, nil
}

// blockBytes is the unit of filler: noiseBytes of noise and the rest text, which makes the ratio of compression that
// the real executables have together: 55 to 62 of 308 MB.
const (
	blockBytes = 4096
	noiseBytes = 780
)

// Content makes the file. The same Executable gives the same bytes; another version differs in its header and one block
// of eight, as a patch release does.
func (e Executable) Content() []byte {
	header, err := json.Marshal(e)
	if err != nil {
		panic(fmt.Sprintf("encode the header of a stand-in: %v", err)) // Strings and a number can be encoded.
	}
	content := make([]byte, 0, max(e.Size, 0)+blockBytes)
	content = append(content, executableMagic...)
	content = append(content, header...)
	content = append(content, '\n')
	for block := 0; len(content) < e.Size; block++ {
		content = e.appendBlock(content, block)
	}
	return content[:max(e.Size, len(executableMagic)+len(header)+1)]
}

func (e Executable) appendBlock(content []byte, block int) []byte {
	seed := fmt.Sprintf("%s/%s/%d", e.Component, e.File, block)
	if block%8 == 0 {
		seed += "/" + e.Version + string(e.Defect)
	}
	start := len(content)
	content = append(content, make([]byte, noiseBytes)...)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(seed))).Read(content[start:]) // never fails
	for len(content) < start+blockBytes {
		content = append(content, "This program cannot be run in DOS mode, nor outside of the lab.\r\n"...)
	}
	return content[:start+blockBytes]
}
