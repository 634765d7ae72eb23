package payload

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// programMark starts the line at the end of a simulated executable that is a real program.
const programMark = "\nwmco-lab-stand-in "

// maxDescriptionLength is the maximum length of that line in bytes.
const maxDescriptionLength = 1 << 10

// Program returns a program that runs on a real Windows and simulates e: the program, filler up to e.Size if
// possible, and the description. Windows and Wine ignore data after an image.
func (e Executable) Program(program []byte) ([]byte, error) {
	line, err := json.Marshal(e)
	if err != nil {
		return nil, fmt.Errorf("make the program for %s: %w", e.File, err)
	}
	end := append(append([]byte(programMark), line...), '\n')
	if len(end) > maxDescriptionLength {
		return nil, fmt.Errorf("make the program for %s: its names and version are longer than %d bytes",
			e.File, maxDescriptionLength)
	}
	content := bytes.Clone(program)
	for block := 0; len(content)+len(end) < e.Size; block++ {
		content = e.appendBlock(content, block)
	}
	content = content[:max(len(program), min(len(content), e.Size-len(end)))]
	return append(content, end...), nil
}

// ReadProgram reads the description from the program at a path.
func ReadProgram(path string) (Executable, error) {
	e, err := readProgram(path)
	if err != nil {
		return e, fmt.Errorf("read what %s stands for: %w", path, err)
	}
	return e, nil
}

func readProgram(path string) (e Executable, err error) {
	file, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return e, err
	}
	end := make([]byte, min(maxDescriptionLength, info.Size()))
	if _, err := file.ReadAt(end, info.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return e, err
	}
	at := bytes.LastIndex(end, []byte(programMark))
	if at < 0 {
		return e, errors.New("it was not made for the lab's payload")
	}
	return e, json.Unmarshal(end[at+len(programMark):], &e)
}
