// The calls of libsrtp 3 that mediasoup's worker makes, by libsrtp 2, which Debian 12 has. Version 3 writes what it
// makes to another place than it reads from, and takes the room that is there. get-worker.sh puts this file in the
// place of srtp.h.
#ifndef WEIR_LIBSRTP3_H
#define WEIR_LIBSRTP3_H

#include <srtp2/srtp.h>

#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Errors that version 2 does not have.
#define srtp_err_status_cryptex_err static_cast<srtp_err_status_t>(28)
#define srtp_err_status_buffer_small static_cast<srtp_err_status_t>(29)

// Calls one of version 2, which changes a packet in its place, on a copy.
template <typename Change>
inline srtp_err_status_t weir_srtp_copied(
  const uint8_t* from, size_t length, uint8_t* to, size_t* room, size_t more, Change change)
{
	if (length + more > *room || length > INT_MAX)
	{
		return srtp_err_status_buffer_small;
	}
	if (from != to)
	{
		std::memcpy(to, from, length);
	}
	int changed = static_cast<int>(length);
	const srtp_err_status_t status = change(to, &changed);
	*room = static_cast<size_t>(changed);
	return status;
}

inline srtp_err_status_t srtp_protect(
  srtp_t session, const uint8_t* rtp, size_t length, uint8_t* srtp, size_t* room, size_t /*mki*/)
{
	return weir_srtp_copied(
	  rtp, length, srtp, room, SRTP_MAX_TRAILER_LEN, [session](uint8_t* packet, int* size)
	  { return srtp_protect(session, packet, size); });
}

inline srtp_err_status_t srtp_protect_rtcp(
  srtp_t session, const uint8_t* rtcp, size_t length, uint8_t* srtcp, size_t* room, size_t /*mki*/)
{
	return weir_srtp_copied(
	  rtcp, length, srtcp, room, SRTP_MAX_TRAILER_LEN + sizeof(uint32_t), [session](uint8_t* packet, int* size)
	  { return srtp_protect_rtcp(session, packet, size); });
}

inline srtp_err_status_t srtp_unprotect(
  srtp_t session, const uint8_t* srtp, size_t length, uint8_t* rtp, size_t* room)
{
	return weir_srtp_copied(srtp, length, rtp, room, 0, [session](uint8_t* packet, int* size)
	  { return srtp_unprotect(session, packet, size); });
}

inline srtp_err_status_t srtp_unprotect_rtcp(
  srtp_t session, const uint8_t* srtcp, size_t length, uint8_t* rtcp, size_t* room)
{
	return weir_srtp_copied(srtcp, length, rtcp, room, 0, [session](uint8_t* packet, int* size)
	  { return srtp_unprotect_rtcp(session, packet, size); });
}

inline srtp_err_status_t srtp_stream_remove(srtp_t session, uint32_t ssrc)
{
	return srtp_remove_stream(session, ssrc);
}

#endif
