package weir

import "fmt"

// Status is an error of the library. The numbers are those of weir.h.
type Status int32

// Results that are errors.
const (
	ErrInvalidArgument  Status = -2 // a number is outside its range
	ErrUnknownAlgorithm Status = -4 // no controller has this name
	ErrLimits           Status = -5 // the bitrates violate 0 < min <= start <= max
	ErrInternal         Status = -9 // a defect of the library: the controller can only be closed
	ErrClosed           Status = -100
)

var statusTexts = map[Status]string{
	ErrInvalidArgument:  "a number is outside its range",
	ErrUnknownAlgorithm: "no controller has this name",
	ErrLimits:           "bitrate limits must satisfy 0 < min <= start <= max",
	ErrInternal:         "a defect of the library",
	ErrClosed:           "the controller is closed",
}

func (s Status) Error() string {
	text, known := statusTexts[s]
	if !known {
		text = fmt.Sprintf("status %d", int32(s))
	}
	return "weir: " + text
}
